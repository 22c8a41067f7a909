/** The OpenAI client for Python, from an environment of its own that `.ci/openai-python` makes, or from the system's. */
import { execFile } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const OPENAI_PYTHON_PROGRAM = fileURLToPath(new URL("./programs/openai_client.py", import.meta.url));
/** What to say when `findOpenAiPython` answers null. */
export const OPENAI_PYTHON_ABSENT = "run .ci/openai-python, or pip install openai";

/** A Python that can import the client; null when there is none. */
export async function findOpenAiPython(): Promise<string | null> {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  for (const python of [join(cache, "sluice/openai-python/bin/python"), "python3"]) {
    if (await canImport(python)) return python;
  }
  return null;
}

async function canImport(python: string): Promise<boolean> {
  try {
    await promisify(execFile)(python, ["-c", "import openai; openai.OpenAI, openai.OpenAI.responses"]);
    return true;
  } catch {
    return false;
  }
}
