/** Reads the wishes and the preset of an input, for both faces. */
import type { RequestContext } from "../../../context.js";
import { wrongField } from "../../../errors.js";
import type { Clock } from "../../../lib/clock.js";
import { isRecord } from "../../../lib/json.js";
import { ownValue } from "../../../lib/own-values.js";
import type { Database } from "../../../store/database.js";
import type { Catalog } from "../../catalog/catalog.js";
import { fillPreset, type PresetFormat, presetIn } from "../../presets/fill.js";
import { Presets } from "../../presets/presets.js";
import { FIELDS, type Taken, takeWishes } from "./wishes.js";

export const WISH_FIELDS = [...FIELDS, "preset"] as const;
const PRESET_PATHS = "chats: POST /v1/chat/completions, /v1/responses, /v1/messages, /v1/completions, /text and Gemini's generateContent";

export class WishReader {
  constructor(
    private readonly catalog: Pick<Catalog, "findFor">,
    private readonly presets: Pick<Presets, "find">,
  ) {}

  /**
   * Splits wishes from an input, and fills its preset in; null: it has neither. A promise only for a preset. Throws BAD_REQUEST naming the
   * field.
   */
  take<Input>(ctx: RequestContext, input: Input, format?: PresetFormat): Taken<Input> | null | Promise<Taken<Input>> {
    if (!isRecord(input)) return null;
    const name = presetNameIn(input);
    if (name === null) return this.takeOnly(ctx, input);
    if (format === undefined) throw wrongField(name.param, `presets are for ${PRESET_PATHS}`);
    return this.fill(ctx, input, name, format);
  }

  private takeOnly<Input>(ctx: RequestContext, input: Input & Readonly<Record<string, unknown>>): Taken<Input> | null {
    if (!Object.hasOwn(input, "preset")) return takeWishes<Input>(ctx, this.catalog, input);
    const { preset: _, ...rest } = input;
    return takeWishes(ctx, this.catalog, rest as Input) ?? { rest: rest as Input, wishes: undefined };
  }

  private async fill<Input>(ctx: RequestContext, input: Input, { name, param }: NamedPreset, format: PresetFormat): Promise<Taken<Input>> {
    const preset = await this.presets.find(ctx, name, param);
    const filled = fillPreset(input as Readonly<Record<string, unknown>>, preset, format) as Input;
    return { ...(takeWishes(ctx, this.catalog, filled) ?? { rest: filled, wishes: undefined }), isFilled: true };
  }
}

interface NamedPreset {
  readonly name: string;
  /** The field that names it. */
  readonly param: string;
}

function presetNameIn(input: Readonly<Record<string, unknown>>): NamedPreset | null {
  const stated = ownValue(input, "preset") ?? null;
  const named = presetIn(ownValue(input, "model"));
  if (stated === null) return named === null ? null : { name: named, param: "model" };
  if (typeof stated !== "string" || stated === "") throw wrongField("preset", "expected the name of a preset of your account");
  const name = presetIn(stated) ?? stated;
  if (named !== null && named !== name)
    throw wrongField("preset", `is ${JSON.stringify(name.slice(0, 64))}, and model names another preset. State one of the two`);
  return { name, param: "preset" };
}

export function createPresets(
  database: Database,
  catalog: Catalog,
  clock: Clock,
): { readonly presets: Presets; readonly wishes: WishReader } {
  const presets = new Presets(database, catalog, clock);
  return { presets, wishes: new WishReader(catalog, presets) };
}
