/** Vendors and the variables that enable them: the keys, or the address where there is no key. */
import * as z from "zod";
import { httpUrl } from "./values.js";

/** Variables of each vendor. The first key variable that is set counts, with its numbered ones. */
const VENDOR_VARIABLES = {
  openai: { keys: ["OPENAI_API_KEY"], baseUrl: "OPENAI_BASE_URL" },
  anthropic: { keys: ["ANTHROPIC_API_KEY"] },
  gemini: { keys: ["GEMINI_API_KEY"] },
  mistral: { keys: ["MISTRAL_API_KEY"] },
  groq: { keys: ["GROQ_API_KEY"] },
  deepseek: { keys: ["DEEPSEEK_API_KEY"] },
  xai: { keys: ["XAI_API_KEY"] },
  moonshot: { keys: ["MOONSHOT_API_KEY"] },
  zai: { keys: ["ZAI_API_KEY"] },
  cerebras: { keys: ["CEREBRAS_API_KEY"] },
  cohere: { keys: ["COHERE_API_KEY"] },
  openrouter: { keys: ["OPENROUTER_API_KEY"] },
  elevenlabs: { keys: ["ELEVENLABS_API_KEY"] },
  deepgram: { keys: ["DEEPGRAM_API_KEY"] },
  replicate: { keys: ["REPLICATE_API_TOKEN"] },
  fal: { keys: ["FAL_KEY", "FAL_API_KEY"] },
  ollama: { keys: [], baseUrl: "OLLAMA_BASE_URL" },
} as const satisfies Readonly<Record<string, { readonly keys: readonly string[]; readonly baseUrl?: string }>>;

export type VendorId = keyof typeof VENDOR_VARIABLES;
type Variables = (typeof VENDOR_VARIABLES)[VendorId];

/** Unspecified: keys of one vendor in one variable, and the last of its numbered variables, `<variable>_2` and on. */
const KEYS_MAX = 64;
type KeyVariable = Variables["keys"][number];
type AddressVariable = Extract<Variables, { baseUrl: string }>["baseUrl"];

/** Null base URL: the vendor's own. */
export interface VendorConfig {
  readonly apiKey: string | null;
  /** Keys beside the first one; absent: none. */
  readonly furtherApiKeys?: readonly string[];
  readonly baseUrl: string | null;
  /** The variable that enables it. */
  readonly variable?: string;
}

const VENDORS = Object.entries(VENDOR_VARIABLES) as [VendorId, { keys: readonly KeyVariable[]; baseUrl?: AddressVariable }][];

/** Keys are separated by commas, which are in no vendor's keys. */
const keyList = z
  .string()
  .refine((value) => keysIn(value).length <= KEYS_MAX, `must hold at most ${KEYS_MAX} keys, separated by commas`)
  .optional();

/** Schemas of the variables, in the order of the table. */
export const vendorEnvironment = Object.fromEntries(
  VENDORS.flatMap(([, { keys, baseUrl }]): [string, z.ZodType][] => [
    ...keys.map((key): [string, z.ZodType] => [key, keyList]),
    ...(baseUrl === undefined ? [] : [[baseUrl, httpUrl().optional()] as [string, z.ZodType]]),
  ]),
) as Readonly<Record<KeyVariable | AddressVariable, z.ZodType<string | undefined>>>;

/** `readEnv` reads the numbered variables of keys. */
export function toVendors(
  values: Readonly<Partial<Record<KeyVariable | AddressVariable, string | undefined>>>,
  readEnv: (name: string) => string | null,
) {
  const configs = VENDORS.map(([vendor, { keys, baseUrl }]): [VendorId, VendorConfig] => {
    const stated = keys.map((key) => keysOf(key, values[key] ?? "", readEnv));
    const [apiKey = null, ...furtherApiKeys] = stated.find((all) => all.size > 0) ?? [];
    const config = { apiKey, baseUrl: (baseUrl && values[baseUrl]) ?? null, variable: keys[0] ?? baseUrl ?? "" };
    return [vendor, furtherApiKeys.length === 0 ? config : { ...config, furtherApiKeys }];
  });
  return Object.fromEntries(configs) as Readonly<Record<VendorId, VendorConfig>>;
}

/** Those of the variable itself, then those of its numbered ones. */
function keysOf(variable: KeyVariable, value: string, readEnv: (name: string) => string | null): ReadonlySet<string> {
  const all = new Set(keysIn(value));
  for (let number = 2; number <= KEYS_MAX; number += 1) {
    for (const key of keysIn(readEnv(`${variable}_${number}`) ?? "")) all.add(key);
  }
  return all;
}

function keysIn(value: string): string[] {
  return value
    .split(",")
    .map((key) => key.trim())
    .filter((key) => key !== "");
}
