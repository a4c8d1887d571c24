# The tree that the pairs of platform-rules/library run in: `bash fixture.sh ROOT`.
# ROOT/work is the working directory, ROOT/home/ana the home; ROOT/srv, /opt, /data and /backup stand for their namesakes.
# Every file is there because some wrong command would treat it otherwise than the right one.
set -euo pipefail
cd "$1"
export TZ=UTC LC_ALL=C.UTF-8 HOME=$PWD/home/ana
umask 022
mkdir -p work home/ana/Downloads/old home/ana/Documents home/ana/.ssh srv/www/css srv/media opt/app/logs/archive opt/app/conf.d data backup/daily
cd work
mkdir -p src/lib docs/images logs/archive data/raw build/cache node_modules/pkg .config empty_dir nested/empty/deep photos shared .cache

# --- plain text
printf '%s\n' 'Shopping list' '' 'buy milk' 'call Bob about the error' 'fix the TODO in main.py' 'Error: disk full' '' 'buy bread' 'cat and category' 'the end' >notes.txt
printf '%s\n' pear apple Apple fig apple plum fig banana >words.txt
printf '%s\n' 10 9 2 33 -5 7 2 100 >numbers.txt
printf '%s\n' dan ann cid bob >team1.txt
printf '%s\n' eve bob dan >team2.txt
printf '%s\n' 'The quick brown fox' 'jumps over the lazy dog.' 'A fox is not a dog,' 'but the fox likes the dog.' >story.txt
: >empty.txt
printf 'one\r\ntwo\r\n' >dos.txt
for i in $(seq 1 30); do echo "line $i"; done >long.txt
printf 'id\tname\tscore\n3\tzoe\t70\n1\tann\t95\n2\tbob\t8\n' >scores.tsv
printf '%s\n' 'old text here' 'more old text' 'nothing' >draft.txt
printf '%s\n' 'mail ann@example.org or bob@example.com' 'see https://example.org/a?b=1 and http://test.example/x' 'call 555-1234, host 10.0.0.7' 'again ann@example.org' >contacts.txt
printf '%s\n' 'x = 1  ' '   y = 2' 'z =  3' >spaces.txt
printf '%s\n' 'port=8080' '# a comment' 'host=localhost' '' 'debug=true' '#user=root' >app.conf
printf '[server]\nport = 80\nname = web1\n\n[client]\nport = 99\n' >config.ini
printf 'DB_HOST=db1\nDB_PASS=secret\nPORT=5000\n' >.env
printf 'hidden\n' >.hidden
printf 'color=blue\n' >.config/ui.conf
printf 'spaces in the name\n' >'my file.txt'

# --- tables and JSON
printf '%s\n' name,age,city,salary Ann,34,Oslo,5200 Bob,25,Rome,3100 Cid,41,Oslo,4700 Dan,25,Paris,3900 Eve,52,Rome,6100 >people.csv
printf '%s\n' id,customer,product,quantity,price 1,ann,pen,10,1.50 2,bob,ink,2,7.25 3,ann,paper,1,4.00 4,cid,pen,5,1.50 5,ann,ink,3,7.25 >orders.csv
printf '%s\n' 'Ann,Norway' 'Bob,Italy' 'Eve,Italy' >countries.csv
printf 'a,b,c\n1,2,3\n4,5\n' >broken.csv
printf '%s\n' '{"name":"demo","version":"1.4.2","port":8080,"tags":["a","b"],"author":{"name":"Ann","email":"ann@example.org"}}' >package.json
printf '%s\n' '[{"id":1,"name":"Ann","active":true,"age":34},{"id":2,"name":"Bob","active":false,"age":25},{"id":3,"name":"Cid","active":true,"age":41}]' >users.json
printf '%s\n' 'name: demo' 'replicas: 3' 'image: web:1.2' >deploy.yaml
printf '%s\n' '{"level":"info","ms":12}' '{"level":"error","ms":340}' '{"level":"info","ms":7}' >events.jsonl

# --- logs
printf '%s\n' \
  '2024-03-01 09:58:01 INFO start' \
  '2024-03-01 10:00:12 ERROR db timeout after 30s' \
  '2024-03-01 10:05:44 WARN slow query' \
  '2024-03-01 11:20:00 INFO user ann login' \
  '2024-03-02 08:00:09 ERROR db timeout after 31s' \
  '2024-03-02 08:01:00 INFO retry' \
  '2024-03-02 08:02:30 error lower case' \
  '2024-03-02 23:59:59 INFO stop' >app.log
printf '%s\n' \
  '10.0.0.1 - - [01/Mar/2024:10:00:01 +0000] "GET / HTTP/1.1" 200 512' \
  '10.0.0.2 - - [01/Mar/2024:10:00:02 +0000] "GET /a HTTP/1.1" 404 100' \
  '10.0.0.1 - - [01/Mar/2024:11:00:03 +0000] "POST /login HTTP/1.1" 302 20' \
  '10.0.0.3 - - [01/Mar/2024:11:00:04 +0000] "GET /a HTTP/1.1" 404 100' \
  '10.0.0.1 - - [01/Mar/2024:12:00:05 +0000] "GET /big HTTP/1.1" 500 3000' \
  '10.0.0.2 - - [02/Mar/2024:12:00:06 +0000] "GET / HTTP/1.1" 200 512' >access.log
printf 'first\nERROR one\n' >logs/jan.log
printf 'second\nERROR two\nERROR three\n' >logs/feb.log
printf 'calm\n' >logs/quiet.log
printf 'ERROR old\n' >logs/archive/old.log
printf 'packed ERROR\npacked\n' | gzip -n >logs/archive/packed.log.gz

# --- a project
printf 'import os\n# TODO: tidy\ndef main():\n    print("hi")\n\nmain()\n' >src/main.py
printf 'def add(a, b):\n    return a + b\n' >src/util.py
printf 'import sys\nimport os\n# todo later\n' >src/lib/deep.py
printf 'function go() {\n  console.log("x");\n}\n' >src/app.js
printf '#include <stdio.h>\nint main(void) { return 0; }\n' >src/main.c
printf 'int add(int a, int b);\n' >src/util.h
printf '# Guide\n\nUse it well.\n' >docs/guide.md
printf '# API\n' >docs/api.md
printf 'v1\nv2\n' >'docs/release notes.md'
printf 'png' >docs/images/logo.png
printf 'jpeg!' >docs/images/photo.JPG
printf 'console.log("dep");\n' >node_modules/pkg/index.js
printf 'a package\n' >node_modules/pkg/README.md
printf 'obj' >build/main.o
printf 'tmp' >build/cache/a.tmp
printf 'tmp2' >build/b.tmp
printf 'bak' >notes.txt.bak
printf 'bak' >src/main.py.bak
printf 'all:\n\techo built\n' >Makefile
printf '# Demo\n\nA small project.\n' >README.md
printf 'a' >photos/IMG_001.jpeg
printf 'bb' >photos/IMG_002.jpeg
printf 'ccc' >'photos/Holiday One.jpg'
printf 'dddd' >photos/cat.png
printf 'pdf' >report.pdf
printf 'pdf!' >docs/Old.PDF
chmod 444 docs/Old.PDF

# --- sizes: 1000 bytes, 5 KiB, 300 KiB, 2 MiB; two pairs of equal files
head -c 1000 /dev/zero | tr '\0' a >data/small.bin
head -c 5120 /dev/zero | tr '\0' b >data/medium.bin
head -c 307200 /dev/zero | tr '\0' c >data/large.bin
head -c 2097152 /dev/zero | tr '\0' d >data/raw/huge.iso
printf 'same content\n' >data/copy1.txt
printf 'same content\n' >data/copy2.txt
printf 'same content\n' >data/raw/copy3.txt
printf 'unique\n' >data/alone.txt

# --- links and permissions
ln -s notes.txt link.txt
ln -s nowhere broken
ln -s src code
ln words.txt hard.txt
printf '#!/bin/sh\necho running "$@"\n' >run.sh
printf '#!/bin/sh\necho plain\n' >plain.sh
printf 'key\n' >secret.key
printf 'open\n' >shared/open.txt
printf 'tool\n' >shared/suid-tool
chmod 755 run.sh
chmod 600 secret.key
chmod 666 shared/open.txt
chmod 4755 shared/suid-tool
chmod 777 shared

# --- archives
tar -czf backup.tar.gz docs
tar -cf plain.tar notes.txt words.txt
tar -cJf logs.tar.xz logs
if command -v zip >/dev/null; then zip -qr bundle.zip docs; fi
gzip -nc story.txt >story.txt.gz

# --- outside the working directory
printf 'body {}\n' >../srv/www/css/site.css
printf '<h1>hi</h1>\n' >../srv/www/index.html
printf '<p>old</p>\n' >../srv/www/old.html
for i in 1 2 3 4 5 6; do head -c $((i * 1000)) /dev/zero >"../srv/media/film$i.mkv"; done
printf 'proxy = on\n' >../opt/app/conf.d/net.conf
printf 'cache = off\n' >../opt/app/conf.d/store.conf
printf 'ERROR boom\nok\n' >../opt/app/logs/today.log
printf 'x\n' >../opt/app/logs/stale.log
printf 'x\n' >../opt/app/logs/archive/stale.log
printf 'x\n' >../home/ana/Downloads/setup.iso
printf 'x\n' >../home/ana/Downloads/fresh.pdf
printf 'x\n' >../home/ana/Downloads/old/letter.pdf
printf 'doc\n' >../home/ana/Documents/plan.txt
printf 'k\n' >../home/ana/.ssh/id_rsa
printf 'db\n' >../data/main.db
printf 'd\n' >../backup/daily/db-1.sql
printf 'd\n' >../backup/daily/db-2.sql
printf 'd\n' >../backup/daily/db-3.sql
chmod 644 ../home/ana/.ssh/id_rsa

# --- a repository: five commits by two people, two branches, a tag, one change in the tree and one new file
mkdir repo
(
  cd repo
  export GIT_CONFIG_NOSYSTEM=1
  commit() {
    GIT_AUTHOR_DATE="$1" GIT_COMMITTER_DATE="$1" git -c user.name="$2" -c user.email="$2@example.org" commit -q -m "$3"
  }
  git init -q -b main --template= .
  git config user.name Ana
  git config user.email ana@example.org
  printf 'one\n' >a.txt && git add . && commit 2024-01-10T10:00:00 Ana 'first commit'
  printf 'two\n' >>a.txt && printf 'b\n' >b.txt && git add . && commit 2024-01-11T10:00:00 Ana 'add b'
  git tag v1.0
  printf 'three\n' >>a.txt && git add . && commit 2024-02-01T10:00:00 Ben 'fix crash in parser'
  git branch old-idea
  git switch -q -c feature/login && printf 'login\n' >login.txt && git add . && commit 2024-02-02T10:00:00 Ben 'add login'
  git switch -q main && printf 'c\n' >c.txt && git add . && commit 2024-02-03T10:00:00 Ana 'add c'
  printf 'four\n' >>a.txt
  printf 'new\n' >new.txt
)

# --- ages: all of it from 1 March 2024, but for these
find .. -exec touch -h -d '2024-03-01 10:00' {} +
touch -h -d '2024-01-15 10:00' words.txt docs/api.md src/util.py ../srv/www/old.html
touch -d '5 minutes ago' notes.txt docs/guide.md ../home/ana/Downloads/fresh.pdf ../backup/daily/db-3.sql
touch -d '50 minutes ago' src/main.py story.txt
touch -d '5 hours ago' people.csv logs/feb.log
touch -d '3 days ago' logs/jan.log photos/cat.png build/b.tmp ../opt/app/logs/today.log ../backup/daily/db-2.sql
touch -d '20 days ago' logs/quiet.log report.pdf ../backup/daily/db-1.sql
touch -d '100 days ago' logs/archive/old.log ../opt/app/logs/stale.log ../opt/app/logs/archive/stale.log
