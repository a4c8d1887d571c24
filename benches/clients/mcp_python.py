#!/usr/bin/env python3
"""Checks caro as an MCP server with the protocol's official Python SDK, over stdio and over HTTP.

    pip install mcp
    python benches/clients/mcp_python.py --caro target/release/caro
    python benches/clients/mcp_python.py --caro target/debug/caro --model script:replies.json

Without --model caro's settings choose the model. The server over HTTP is started here, on a free port. Prints a line
for each check; the exit code is 1 if one failed. The SDK itself validates each structured result against the tool's
output schema. Connects only to the two servers.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

TOOLS = ["generate_command", "check_command", "explain_command", "search_manual"]
FAILED = []


def say(name, right, detail=""):
    """Prints the result of a check."""
    print(f"{'ok    ' if right else 'FAILED'} {name}{': ' if detail else ''}{detail}", flush=True)
    if not right:
        FAILED.append(name)


async def use(client, name):
    """Checks everything that the server offers."""
    say(f"{name}: revision", bool(client.protocol_version), client.protocol_version)
    listed = await client.list_tools()
    names = [tool.name for tool in listed.tools]
    say(f"{name}: tools/list", names[:4] == TOOLS, ", ".join(names))
    hints = all(tool.annotations and tool.annotations.read_only_hint for tool in listed.tools[:4])
    say(f"{name}: annotations and schemas", hints and all(tool.output_schema for tool in listed.tools))
    stages = []

    async def progress(done, total, message):
        stages.append(message)

    begun = time.monotonic()
    made = await client.call_tool("generate_command", {"request": "list files"}, progress_callback=progress)
    took = time.monotonic() - begun
    command = (made.structured_content or {}).get("cmd")
    say(f"{name}: generate_command", bool(command) and not made.is_error, f"{command} ({took:.2f} s)")
    say(f"{name}: progress", bool(stages), f"{len(stages)} stages")
    checked = await client.call_tool("check_command", {"command": "rm -rf /", "shell": "bash"})
    say(f"{name}: check_command", checked.structured_content["risk"]["level"] == "danger")
    explained = await client.call_tool("explain_command", {"command": "ls -l", "shell": "bash"})
    say(f"{name}: explain_command", explained.structured_content["commands"][0]["name"] == "ls")
    found = await client.call_tool("search_manual", {"program": "ls", "query": "sort by size"})
    say(f"{name}: search_manual", bool(found.structured_content["hits"]))
    bad = await client.call_tool("check_command", {"command": ""})
    say(f"{name}: a failure says what to do", bad.is_error and "What to do next" in bad.content[0].text)
    try:
        await client.call_tool("no_such_tool", {})
        say(f"{name}: no such tool", False)
    except Exception as error:
        say(f"{name}: no such tool", "no_such_tool" in str(error), str(error))
    checks = [client.call_tool("check_command", {"command": f"echo {number}"}) for number in range(50)]
    answers = await asyncio.gather(*checks)
    own = [answer.structured_content["cmd"] for answer in answers] == [f"echo {number}" for number in range(50)]
    say(f"{name}: 50 calls at once, each its own answer", own)


async def both(arguments):
    """Checks both transports, each with a handshake (legacy) and in the mode that the SDK chooses (auto)."""
    more = ["--model", arguments.model] if arguments.model else []
    for mode in ["legacy", "auto"]:
        server = StdioServerParameters(command=arguments.caro, args=["mcp", "serve", *more], env=dict(os.environ))
        async with Client(stdio_client(server), mode=mode) as client:
            await use(client, f"stdio, {mode}")
    server = subprocess.Popen([arguments.caro, "--quiet", "serve", "--port", "0", *more], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip() + "/mcp"
        token = subprocess.run([arguments.caro, "serve", "token"], capture_output=True, text=True, check=True).stdout.strip()
        for mode in ["legacy", "auto"]:
            http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
            async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                for _ in range(600):
                    ready = await client.call_tool("check_command", {"command": "ls"})
                    if not ready.is_error:
                        break
                    await asyncio.sleep(0.5)
                await use(client, f"http, {mode}")
    finally:
        server.terminate()
        server.wait(timeout=40)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--caro", default="caro", help="the program")
    parser.add_argument("--model", help="the model, as caro names them")
    arguments = parser.parse_args()
    asyncio.run(both(arguments))
    print(json.dumps({"failed": FAILED}))
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
