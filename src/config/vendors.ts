/** Vendors and the variables that enable them: the key, or the address where there is no key. */
import * as z from "zod";
import { httpUrl } from "./values.js";

/** Variables of each vendor. The first key variable that is set counts. */
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
type KeyVariable = Variables["keys"][number];
type AddressVariable = Extract<Variables, { baseUrl: string }>["baseUrl"];

/** Null base URL: the vendor's own. */
export interface VendorConfig {
  readonly apiKey: string | null;
  readonly baseUrl: string | null;
  /** The variable that enables it. */
  readonly variable?: string;
}

const VENDORS = Object.entries(VENDOR_VARIABLES) as [VendorId, { keys: readonly KeyVariable[]; baseUrl?: AddressVariable }][];

/** Schemas of the variables, in the order of the table. */
export const vendorEnvironment = Object.fromEntries(
  VENDORS.flatMap(([, { keys, baseUrl }]): [string, z.ZodType][] => [
    ...keys.map((key): [string, z.ZodType] => [key, z.string().optional()]),
    ...(baseUrl === undefined ? [] : [[baseUrl, httpUrl().optional()] as [string, z.ZodType]]),
  ]),
) as Readonly<Record<KeyVariable | AddressVariable, z.ZodType<string | undefined>>>;

export function toVendors(values: Readonly<Partial<Record<KeyVariable | AddressVariable, string | undefined>>>) {
  const configs = VENDORS.map(([vendor, { keys, baseUrl }]): [VendorId, VendorConfig] => {
    const apiKey = keys.map((key) => values[key]).find((value) => value !== undefined) ?? null;
    return [vendor, { apiKey, baseUrl: (baseUrl && values[baseUrl]) ?? null, variable: keys[0] ?? baseUrl ?? "" }];
  });
  return Object.fromEntries(configs) as Readonly<Record<VendorId, VendorConfig>>;
}
