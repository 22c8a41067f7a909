"""What the official SDK of MCP for Python makes of a gateway's tools, as JSON on the standard output.

    SLUICE_URL=http://localhost:4000/mcp SLUICE_KEY=sk_... python mcp_client.py
"""

import asyncio
import importlib.metadata
import json
import os

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

seen = {"version": importlib.metadata.version("mcp")}


def told(result):
    blocks = [[block.type, len(getattr(block, "data", None) or block.text)] for block in result.content]
    return {"is_error": result.is_error, "blocks": blocks, "structured": result.structured_content}


async def main():
    headers = {"Authorization": f"Bearer {os.environ['SLUICE_KEY']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=300) as http:
        async with Client(streamable_http_client(os.environ["SLUICE_URL"], http_client=http)) as client:
            seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
            for name, arguments in json.loads(os.environ["SLUICE_CALLS"]):
                seen.setdefault("calls", []).append(told(await client.call_tool(name, arguments)))


asyncio.run(main())
print(json.dumps(seen))
