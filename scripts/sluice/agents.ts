/** `agents setup <program>`: the lines that point a coding agent at the gateway, printed or written to its settings. */
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isRecord } from "../../src/lib/json.js";
import { StartError } from "../../src/lib/start-error.js";
import type { Outcome } from "./present.js";

export interface Target {
  /** Without a trailing slash. */
  readonly url: string;
  /** Null: only lines that name the variable SLUICE_KEY can be made. */
  readonly key: string | null;
  /** Letters, digits and . _ : / @ - */
  readonly model: string;
}

type TargetWithKey = Target & { readonly key: string };

interface Setting {
  /** For a shell. */
  readonly lines: (target: Target) => readonly string[];
  /** Relative to the home directory, or, for `isOfProject`, to the working directory. */
  readonly file: string;
  readonly isOfProject?: boolean;
  readonly content: (target: TargetWithKey) => string | JsonSettings;
  /** A command that uses it. */
  readonly run: (target: Target) => string;
}

/** Added to settings that are there. */
type JsonSettings = Readonly<Record<string, unknown>>;

const KEY_VARIABLE = "SLUICE_KEY";
/** The variable itself, so that the key stays out of the shell's history. */
const SHELL_KEY = `$${KEY_VARIABLE}`;

const PROGRAMS: ReadonlyMap<string, Setting> = new Map<string, Setting>([
  [
    "claude-code",
    {
      lines: (target) => exports(claudeCode(target, SHELL_KEY)),
      file: ".claude/settings.json",
      content: (target) => ({ env: claudeCode(target, target.key) }),
      run: () => "claude",
    },
  ],
  [
    "codex",
    {
      lines: (target) => [`# in ~/.codex/config.toml; the key stays in the variable ${KEY_VARIABLE}`, ...codex(target)],
      file: ".codex/config.toml",
      content: (target) => `${codex(target).join("\n")}\n`,
      run: () => "codex",
    },
  ],
  [
    "gemini",
    {
      lines: (target) => exports(gemini(target, SHELL_KEY)),
      file: ".gemini/.env",
      content: (target) => variables(gemini(target, target.key)),
      run: () => "gemini",
    },
  ],
  [
    "opencode",
    {
      lines: (target) => ["# in opencode.json", ...JSON.stringify(opencode(target), null, 2).split("\n")],
      file: "opencode.json",
      isOfProject: true,
      content: opencode,
      run: ({ model }) => `opencode --model sluice/${model}`,
    },
  ],
  [
    "qwen-code",
    {
      lines: (target) => exports(openAi(target, SHELL_KEY, "OPENAI_BASE_URL")),
      file: ".qwen/.env",
      content: (target) => variables(openAi(target, target.key, "OPENAI_BASE_URL")),
      run: () => "qwen",
    },
  ],
  [
    "aider",
    {
      lines: (target) => exports(openAi(target, SHELL_KEY, "OPENAI_API_BASE", null)),
      file: ".env",
      isOfProject: true,
      content: (target) => variables(openAi(target, target.key, "OPENAI_API_BASE", null)),
      run: ({ model }) => `aider --model openai/${model}`,
    },
  ],
]);

export const AGENT_PROGRAMS: readonly string[] = [...PROGRAMS.keys()];

/** Prints the lines; nothing is changed. */
export function showSetup(program: string, target: Target): Outcome {
  const { lines, run } = settingOf(program);
  const shown = [...lines(target), "", `# then: ${run(target)}`];
  return { answer: { program, lines: lines(target), run: run(target) }, words: shown.join("\n") };
}

/** Writes the settings, readable by their owner alone. Throws a StartError instead of replacing a file that cannot be added to. */
export async function writeSetup(
  program: string,
  target: Target,
  folders: { readonly home: string; readonly project: string },
): Promise<Outcome> {
  const { file, isOfProject = false, content, run } = settingOf(program);
  const path = join(isOfProject ? folders.project : folders.home, file);
  const present = await readIfThere(path);
  if (target.key === null) throw new StartError(`${KEY_VARIABLE} must hold the key that the program is to use.`);
  const made = content({ ...target, key: target.key });
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, typeof made === "string" ? asNew(path, present, made) : added(path, present, made), { mode: 0o600 });
  // The mode above is for new files only.
  await chmod(path, 0o600);
  return { answer: { program, file: path, run: run(target) }, words: `Wrote ${path}. Then: ${run(target)}` };
}

function settingOf(program: string): Setting {
  const setting = PROGRAMS.get(program);
  if (setting === undefined) throw new StartError(`${JSON.stringify(program)} is not known; known are ${AGENT_PROGRAMS.join(", ")}.`);
  return setting;
}

function asNew(path: string, present: string | null, text: string): string {
  if (present === null || present.trim() === "") return text;
  throw new StartError(`${path} is there already: add these lines to it.\n${text.trimEnd()}`);
}

function added(path: string, present: string | null, settings: JsonSettings): string {
  let own: unknown = {};
  try {
    if (present !== null && present.trim() !== "") own = JSON.parse(present);
  } catch {
    own = null;
  }
  if (!isRecord(own)) throw new StartError(`${path} is no JSON object: add these settings to it.\n${JSON.stringify(settings, null, 2)}`);
  return `${JSON.stringify(merged(own, settings), null, 2)}\n`;
}

function merged(own: JsonSettings, more: JsonSettings): JsonSettings {
  const both = new Map(Object.entries(own));
  for (const [name, value] of Object.entries(more)) {
    const present = both.get(name);
    both.set(name, isRecord(present) && isRecord(value) ? merged(present, value) : value);
  }
  return Object.fromEntries(both);
}

async function readIfThere(path: string): Promise<string | null> {
  return readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw new StartError(`${path} cannot be read (${error.code}).`);
  });
}

type Variables = Readonly<Record<string, string>>;

function claudeCode({ url, model }: Target, key: string): Variables {
  return {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_AUTH_TOKEN: key,
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1",
  };
}

function gemini({ url, model }: Target, key: string): Variables {
  return { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key, GEMINI_MODEL: model };
}

function openAi({ url, model }: Target, key: string, base: string, modelVariable: string | null = "OPENAI_MODEL"): Variables {
  return { [base]: `${url}/v1`, OPENAI_API_KEY: key, ...(modelVariable !== null && { [modelVariable]: model }) };
}

function codex({ url, model }: Target): readonly string[] {
  return [
    `model = ${JSON.stringify(model)}`,
    'model_provider = "sluice"',
    "",
    "[model_providers.sluice]",
    'name = "Sluice"',
    `base_url = ${JSON.stringify(`${url}/v1`)}`,
    `env_key = "${KEY_VARIABLE}"`,
    'wire_api = "responses"',
  ];
}

function opencode({ url, model }: Target): JsonSettings {
  return {
    $schema: "https://opencode.ai/config.json",
    provider: {
      sluice: {
        npm: "@ai-sdk/openai-compatible",
        name: "Sluice",
        options: { baseURL: `${url}/v1`, apiKey: `{env:${KEY_VARIABLE}}` },
        models: { [model]: { name: model } },
      },
    },
  };
}

function exports(values: Variables): readonly string[] {
  return Object.entries(values).map(([name, value]) => `export ${name}="${value}"`);
}

function variables(values: Variables): string {
  return `${Object.entries(values)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join("\n")}\n`;
}
