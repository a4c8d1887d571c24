//! Lists of names in six languages, separated by blanks; see [`super`] for their use.

/// Keywords of the languages.
pub(super) const WORDS: &str = "\
    if else elif elsif elseif unless while until for foreach in not and or xor is return break continue next last redo pass lambda \
    def fn function sub my our local let const var do then end begin BEGIN END rescue ensure try catch finally except raise throw \
    with as del True False None true false null nil undefined NaN Infinity yield await async of typeof new case when switch default \
    repeat eq ne lt gt le ge cmp x assert echo global loop import from use void list array strict warnings utf8 feature _";

/// Attributes and methods of values that compute, in any of the languages. None of these names has a side effect in
/// any module of [`MODULES`].
pub(super) const ATTRIBUTES: &str = "\
    append extend insert pop push shift unshift sort sorted reverse reversed index indexOf count items keys values entries join \
    split splitlines strip lstrip rstrip trim trimStart trimEnd lower upper title capitalize swapcase toUpperCase toLowerCase upcase \
    downcase replace replaceAll startswith endswith startsWith endsWith find rfind isdigit isalpha isalnum isspace zfill ljust rjust \
    center padStart padEnd format encode decode hex bit_length to_bytes from_bytes conjugate real imag numerator denominator add \
    update union intersection difference most_common elements copy map filter reduce forEach each each_with_index select reject \
    collect flat flatMap flatten concat slice splice some every includes include first last take drop max min sum abs floor ceil \
    round sqrt pow sin cos tan log log2 log10 exp pi PI e E inf nan gcd factorial comb hypot trunc random randint choice shuffle \
    sample uniform randrange now utcnow today isoformat strftime strptime fromtimestamp timestamp timedelta timezone utc date time \
    datetime year month day hour minute second days seconds total_seconds weekday isocalendar toISOString toLocaleString \
    toLocaleDateString toLocaleTimeString toString toFixed toJSON getTime getFullYear getMonth getDate getDay getHours getMinutes \
    getTimezoneOffset loads dumps parse stringify generate pretty_generate to_json to_s to_i to_f to_a to_h to_sym to_r inspect \
    length len size empty any all none zip uniq tally group_by sort_by min_by max_by partition each_slice each_cons times upto \
    downto step chars bytes lines gsub sub match matchAll scan test search fullmatch findall finditer group groups groupdict compact \
    transpose product permutation combination permutations combinations repeat fill from of isArray fromEntries assign freeze \
    charCodeAt codePointAt charAt at localeCompare normalize hexdigest digest md5 sha1 sha256 sha512 new b64encode b64decode \
    urlsafe_b64encode quote unquote urlencode urlparse uuid1 uuid4 token_hex token_urlsafe randbelow mean median stdev version \
    __version__ __file__ python_version platform machine node release processor system_name uname architecture name ascii_letters \
    ascii_lowercase ascii_uppercase digits punctuation printable parent get setdefault chain islice groupby accumulate pprint \
    Counter defaultdict Decimal Fraction month_name monthcalendar calendar isleap error table info warn dir timeEnd byte char rep \
    gmatch huge maxinteger unpack fdiv divmod even odd zero positive succ pred chomp chr ord rand sec cuda is_available device_count \
    array shape arange linspace zeros ones NumberFormat DateTimeFormat resolvedOptions timeZone clear has ip_network ip_address \
    hosts num_addresses network_address broadcast_address literal_eval read readline readlines each_line then squeeze delete_prefix \
    delete_suffix tr is_integer key fetch_values reader DictReader fieldnames pstdev variance pvariance quantiles mode";

/// Python modules that only compute; only names of [`ATTRIBUTES`] may be looked up in them.
pub(super) const MODULES: &str = "\
    json math cmath re datetime time random itertools functools collections string statistics decimal fractions platform base64 \
    hashlib textwrap pprint uuid calendar struct binascii secrets html unicodedata ipaddress colorsys difflib heapq bisect zoneinfo \
    typing ast dataclasses enum csv configparser numpy pandas torch scipy sklearn tensorflow django flask tomllib sysconfig";

/// Qualified names in modules and globals that could do anything: only these are allowed, as a whole.
pub(super) const WHOLE: &str = "\
    json.load tomllib.load \
    sys.argv sys.stdin sys.stdin.read sys.stdin.readline sys.stdin.readlines sys.stdin.buffer.read sys.stdout sys.stdout.write \
    sys.stdout.flush sys.stderr sys.stderr.write sys.version sys.version_info sys.path sys.executable sys.platform sys.maxsize \
    sys.maxunicode sys.byteorder sys.exit sys.getsizeof sys.prefix sys.base_prefix sys.implementation.name sys.getdefaultencoding \
    sys.version_info.major sys.version_info.minor sys.float_info sys.getrecursionlimit os.getcwd os.cpu_count os.getpid os.sep \
    os.linesep os.uname os.listdir os.path.join os.path.exists os.path.basename os.path.dirname os.path.abspath os.path.realpath \
    os.path.relpath os.path.getsize os.path.getmtime os.path.expanduser os.path.splitext os.path.isdir os.path.isfile os.getloadavg \
    os.name os.stat os.hostname os.cpus os.totalmem os.freemem os.platform os.arch os.release os.uptime os.tmpdir os.homedir \
    os.networkInterfaces os.type os.EOL os.version os.userInfo os.loadavg os.date os.time os.clock os.getlogin io.write io.read \
    io.lines shutil.disk_usage shutil.which shutil.get_terminal_size socket.gethostname socket.getfqdn urllib.parse.quote \
    urllib.parse.unquote urllib.parse.quote_plus urllib.parse.unquote_plus urllib.parse.urlencode urllib.parse.urlparse \
    ssl.OPENSSL_VERSION sqlite3.sqlite_version site.getsitepackages locale.getpreferredencoding process.version process.versions \
    process.versions.node process.versions.v8 process.argv process.platform process.arch process.uptime process.memoryUsage \
    process.cwd process.execPath process.hrtime process.pid process.stdout.write process.exit process.release.name process.title \
    process.stdout.columns";

/// Names that run code, open files or look up arbitrary names; they are never allowed.
pub(super) const NEVER: &str = "\
    exec eval compile open execfile reload file apply input raw_input getattr setattr delattr globals locals vars breakpoint help \
    super type object memoryview property classmethod system fork Function global globalThis module exports Reflect Proxy \
    WebAssembly setTimeout setInterval setImmediate fetch Deno Bun load loadstring loadfile dofile debug package _G _ENV getfenv \
    setfenv setmetatable rawset Kernel ObjectSpace Process IO File Dir FileUtils send method binding instance_eval include \
    include_once require_once qx syscall goto dump constructor prototype";

/// Functions of Python that compute or print.
pub(super) const PYTHON: &str = "\
    print len range sum min max abs round sorted reversed enumerate zip map filter any all int float str bool list dict set tuple \
    frozenset bytes bytearray complex chr ord hex oct bin divmod pow repr ascii format hash id iter next slice isinstance issubclass \
    callable exit quit datetime date timedelta timezone Counter defaultdict OrderedDict namedtuple deque Decimal Fraction sqrt sin \
    cos log floor ceil gcd factorial comb pi loads dumps pprint reduce partial lru_cache product permutations combinations chain \
    groupby islice accumulate count randint choice shuffle random sample uniform uuid4 uuid1 b64encode b64decode sha256 md5 sha1 \
    quote unquote urlencode urlparse dedent wrap fill sleep time mean median stdev ip_network ip_address ZoneInfo token_hex \
    token_urlsafe gethostname Exception ValueError SystemExit KeyError python_version strftime findall literal_eval";

/// Functions of Perl that compute or print.
pub(super) const PERL: &str = "\
    print printf say join split map grep sort reverse keys values each push pop shift unshift splice length substr index rindex uc \
    lc ucfirst lcfirst sprintf abs int sqrt sin cos exp log hex oct ord chr rand srand time localtime gmtime scalar defined exists \
    delete wantarray chomp chop die warn exit sum sum0 min max first uniq shuffle any all none reduce floor ceil fmod strftime \
    Dumper undef pos quotemeta ref lstat stat eof STDIN STDOUT STDERR ARGV DATA decode_json encode_json encode_base64 md5_hex \
    sha1_hex sha256_hex sleep qw a b";

/// Functions of Ruby that compute or print.
pub(super) const RUBY: &str = "\
    puts print p pp printf format sprintf rand srand gets Integer Float String Array Hash Time Date DateTime Math JSON Set Rational \
    Complex ARGV ARGF STDIN STDOUT STDERR RUBY_VERSION RUBY_PLATFORM RUBY_ENGINE exit abort sleep Random SecureRandom Digest Struct \
    Range Regexp ENV PI E SHA256 MD5 SHA1 Base64 Symbol Comparable require self it";

/// Functions of PHP that compute or print.
pub(super) const PHP: &str = "\
    print printf sprintf date time mktime strtotime gmdate microtime strlen strrev strtoupper strtolower ucfirst ucwords trim ltrim \
    rtrim explode implode join str_repeat str_replace substr strpos count sort rsort ksort asort array_sum array_keys array_values \
    array_merge array_reverse array_unique array_slice in_array range max min abs round floor ceil sqrt pow pi rand mt_rand \
    random_int json_encode json_decode var_dump var_export print_r phpversion php_uname php_sapi_name php_ini_loaded_file ini_get \
    phpinfo extension_loaded get_loaded_extensions function_exists memory_get_usage md5 sha1 crc32 hash base64_encode base64_decode \
    urlencode urldecode htmlspecialchars number_format is_numeric intval floatval strval bin2hex uniqid gettype isset empty PHP_EOL \
    PHP_VERSION PHP_OS PHP_INT_MAX PHP_INT_SIZE PHP_OS_FAMILY M_PI exit die date_default_timezone_get sys_get_temp_dir gethostname \
    mb_strlen mb_strtoupper nl2br array";

/// Functions of JavaScript that compute or print.
pub(super) const JS: &str = "\
    console Math JSON Object Array String Number Boolean Date Map Set BigInt Symbol Intl RegExp parseInt parseFloat isNaN isFinite \
    encodeURIComponent decodeURIComponent encodeURI decodeURI Error URL URLSearchParams structuredClone atob btoa Buffer";

/// Functions of Lua that compute or print.
pub(super) const LUA: &str = "\
    print math string table tostring tonumber pairs ipairs type select unpack next error pcall utf8 _VERSION";
