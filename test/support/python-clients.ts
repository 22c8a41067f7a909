/** Clients for Python, from an environment of its own that `.ci/python-clients` makes, or from the system's. */
import { execFile } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const OPENAI_PYTHON_PROGRAM = fileURLToPath(new URL("./programs/openai_client.py", import.meta.url));
export const MCP_PYTHON_PROGRAM = fileURLToPath(new URL("./programs/mcp_client.py", import.meta.url));
export const GENAI_PYTHON_PROGRAM = fileURLToPath(new URL("./programs/genai_client.py", import.meta.url));
export const ANTHROPIC_PYTHON_PROGRAM = fileURLToPath(new URL("./programs/anthropic_client.py", import.meta.url));
/** What to say when a search below answers null. */
export const OPENAI_PYTHON_ABSENT = "run .ci/python-clients, or pip install openai";
export const MCP_PYTHON_ABSENT = "run .ci/python-clients, or pip install mcp";
export const GENAI_PYTHON_ABSENT = "run .ci/python-clients, or pip install google-genai";
export const ANTHROPIC_PYTHON_ABSENT = "run .ci/python-clients, or pip install anthropic";
export const GENERATOR_PYTHON_ABSENT = "run .ci/python-clients, or pip install openapi-python-client";

/** A Python that can import OpenAI's client; null when there is none. */
export function findOpenAiPython(): Promise<string | null> {
  return findPython("import openai; openai.OpenAI, openai.OpenAI.responses");
}

/** A Python that can import the official SDK of MCP in the version that its program is written for; null when there is none. */
export function findMcpPython(): Promise<string | null> {
  return findPython("import httpx2, mcp; mcp.Client; import mcp.client.streamable_http");
}

/** A Python that can import Google's client for Gemini; null when there is none. */
export function findGenaiPython(): Promise<string | null> {
  return findPython("from google import genai; genai.Client");
}

/** A Python that can import Anthropic's client; null when there is none. */
export function findAnthropicPython(): Promise<string | null> {
  return findPython("import anthropic; anthropic.Anthropic");
}

/** A Python that can run the generator of clients; null when there is none. */
export function findGeneratorPython(): Promise<string | null> {
  return findPython("import openapi_python_client.cli");
}

async function findPython(program: string): Promise<string | null> {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  for (const python of [join(cache, "sluice/python-clients/bin/python"), "python3"]) {
    if (await runs(python, program)) return python;
  }
  return null;
}

async function runs(python: string, program: string): Promise<boolean> {
  try {
    await promisify(execFile)(python, ["-c", program]);
    return true;
  } catch {
    return false;
  }
}
