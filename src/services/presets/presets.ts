/** Presets of an account: named sets of models, wishes, system prompt and parameters (docs/spec/presets.md). Callers that may manage keys manage them. */
import { z } from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound, wrongField } from "../../errors.js";
import { chatFields } from "../../formats/openai-chat/request.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { closest } from "../../lib/issue-words.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import { type Database, lockName, refusingTaken } from "../../store/database.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import type { PresetModel } from "../../store/generated/prisma/models.js";
import { requireCaller, requireKeyManager } from "../access/permissions.js";
import type { Catalog } from "../catalog/catalog.js";
import { assertAgreeing, modelsInput, providerInput } from "../catalog/wish-fields.js";
import { storableText } from "../requests/input.js";
import type { FilledPreset } from "./fill.js";
import {
  PRESET_EARLIER_BYTES_MAX,
  PRESET_EARLIER_MAX,
  PRESET_NAME_CHARS_MAX,
  PRESET_PARAMETERS_BYTES_MAX,
  PRESET_SYSTEM_PROMPT_CHARS_MAX,
  PRESETS_PER_ACCOUNT_MAX,
} from "./limits.js";

const CLOSEST = { namesOf: (preset: { readonly name: string }) => [preset.name], count: 3, charsMax: PRESET_NAME_CHARS_MAX } as const;
const NAME_PATTERN = /^[a-z0-9][a-z0-9-]*$/;
/** A name and a version, such as `support@3`. */
const VERSIONED_PATTERN = /^([^@]*)@([1-9][0-9]{0,8})$/;
const name = z
  .string()
  .min(1)
  .max(PRESET_NAME_CHARS_MAX)
  .regex(NAME_PATTERN, "must consist of lower-case letters, digits and hyphens, and begin with a letter or digit");

const parameters = z
  .strictObject({
    temperature: chatFields.temperature,
    top_p: chatFields.top_p,
    max_tokens: chatFields.max_tokens,
    seed: chatFields.seed,
    presence_penalty: chatFields.presence_penalty,
    frequency_penalty: chatFields.frequency_penalty,
    reasoning_effort: chatFields.reasoning_effort,
    stop: chatFields.stop,
    tools: chatFields.tools,
    tool_choice: chatFields.tool_choice,
    response_format: chatFields.response_format,
  })
  .refine((stated) => Buffer.byteLength(JSON.stringify(stated)) <= PRESET_PARAMETERS_BYTES_MAX, {
    error: `must be at most ${PRESET_PARAMETERS_BYTES_MAX} bytes of JSON`,
    // An invalid field is reported by itself.
    when: ({ issues }) => issues.length === 0,
  });

const set = {
  model: z.string().min(1).max(253).nullish(),
  systemPrompt: storableText.max(PRESET_SYSTEM_PROMPT_CHARS_MAX).nullish(),
  provider: providerInput,
  models: modelsInput,
};

export const createPresetInput = z.strictObject({ name, ...set, parameters: parameters.default({}) });
type CreatePresetInput = z.output<typeof createPresetInput>;

export const updatePresetInput = z.strictObject({ name: name.optional(), ...set, parameters: parameters.optional() });
type UpdatePresetInput = z.output<typeof updatePresetInput>;

const IDENTITY = { id: true, createdAt: true } as const;

const SET = { model: true, systemPrompt: true, parameters: true, provider: true, models: true } as const;
type PresetSet = Pick<PresetModel, keyof typeof SET>;

/** An earlier version, as it is stored. */
export interface EarlierPreset extends PresetSet {
  readonly version: number;
}

export type SelectedPreset = Pick<PresetModel, keyof typeof IDENTITY>;

export class Presets {
  constructor(
    private readonly database: Database,
    private readonly catalog: Pick<Catalog, "resolve">,
    private readonly clock: Clock,
  ) {}

  /** Newest first. */
  async list(ctx: RequestContext, page: PageRequest, select: Prisma.PresetSelect): Promise<Page<SelectedPreset>> {
    const { accountId } = requireKeyManager(ctx);
    const { where: older, ...query } = newestFirst(page);
    const rows = await this.rows.findMany({ where: { accountId, ...older }, select: { ...select, ...IDENTITY }, ...query });
    return toPage(rows, page, () => this.rows.count({ where: { accountId }, take: COUNT_TAKE }));
  }

  /** Leaves out presets of other accounts. */
  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.PresetSelect): Promise<SelectedPreset[]> {
    const { accountId } = requireKeyManager(ctx);
    return this.rows.findMany({ where: { id: { in: ids.filter(isUuid) }, accountId }, select: { ...select, ...IDENTITY } });
  }

  /** Rejects with NOT_FOUND. */
  async get(ctx: RequestContext, id: string, select: Prisma.PresetSelect): Promise<SelectedPreset> {
    const [preset] = await this.getMany(ctx, [id], select);
    if (!preset) throw notFound("preset");
    return preset;
  }

  /**
   * For a request that uses it: any key of the account may. `stated` is a name, or a name and a version (`support@3`). Rejects with
   * BAD_REQUEST at `param`, with the closest names or the kept versions.
   */
  async find(ctx: RequestContext, stated: string, param: string): Promise<FilledPreset> {
    const { accountId } = requireCaller(ctx);
    const [, name = stated, version = null] = VERSIONED_PATTERN.exec(stated) ?? [];
    const select = { ...SET, name: true, version: true, earlier: version !== null } as const;
    const isName = name.length <= PRESET_NAME_CHARS_MAX && NAME_PATTERN.test(name);
    const preset = isName ? await this.rows.findUnique({ where: { accountId_name: { accountId, name } }, select }) : null;
    if (preset) {
      const versions = [preset, ...earlierOf(preset)];
      const chosen = version === null ? preset : versions.find((each) => each.version === Number(version));
      if (chosen !== undefined) return { ...chosen, name, parameters: chosen.parameters as FilledPreset["parameters"] };
      const kept = versions.map((each) => each.version).join(", ");
      throw wrongField(param, `the preset ${name} has no version ${version}. Its versions are: ${kept}`);
    }
    const own = await this.rows.findMany({ where: { accountId }, select: { name: true }, take: PRESETS_PER_ACCOUNT_MAX });
    const near = closest(own, name, CLOSEST).map((each) => each.name);
    const hint = near.length === 0 ? "It has none: create one with the mutation createPreset" : `The closest are: ${near.join(", ")}`;
    throw wrongField(param, `this account has no preset ${JSON.stringify(name.slice(0, PRESET_NAME_CHARS_MAX))}. ${hint}`);
  }

  /** Rejects with BAD_REQUEST for a taken name or an unknown model, and with CONFLICT when the account has too many. */
  async create(ctx: RequestContext, { name, model, systemPrompt, parameters, provider, models }: CreatePresetInput): Promise<string> {
    const { accountId } = requireKeyManager(ctx);
    const now = this.clock.now();
    const id = createId();
    const data = {
      ...{ model: this.modelOf(ctx, model), systemPrompt: systemPrompt ?? null, parameters: toJson(parameters) },
      ...{ provider: toProvider(provider), models: this.modelsOf(ctx, models) },
    };
    await refusingTaken(
      () =>
        this.database.prisma.$transaction(async (transaction) => {
          // Two concurrent requests must not both create the last one allowed.
          await lockName(transaction, `presets of ${accountId}`);
          const there = await transaction.preset.count({ where: { accountId } });
          if (there >= PRESETS_PER_ACCOUNT_MAX) throw conflict(`An account has at most ${PRESETS_PER_ACCOUNT_MAX} presets.`);
          await transaction.preset.create({ data: { id, accountId, name, ...data, createdAt: now, updatedAt: now } });
        }),
      () => nameTaken(name),
    );
    return id;
  }

  /** Changes the given parts. Rejects as `create`, and with NOT_FOUND. */
  async update(ctx: RequestContext, id: string, { name, ...stated }: UpdatePresetInput): Promise<void> {
    const { accountId } = requireKeyManager(ctx);
    if (!isUuid(id)) throw notFound("preset");
    const { model, systemPrompt, parameters, provider, models } = stated;
    const changes = {
      ...(model !== undefined && { model: this.modelOf(ctx, model) }),
      ...(systemPrompt !== undefined && { systemPrompt }),
      ...(parameters !== undefined && { parameters: toJson(parameters) }),
      ...(provider !== undefined && { provider: toProvider(provider) }),
      ...(models !== undefined && { models: this.modelsOf(ctx, models) }),
    };
    const isChanged = Object.keys(changes).length > 0;
    const where = { id, accountId };
    const count = await refusingTaken(
      () =>
        this.database.prisma.$transaction(async (transaction) => {
          await lockName(transaction, `presets of ${accountId}`);
          const before = await transaction.preset.findFirst({ where, select: { ...SET, version: true, earlier: true } });
          const data = {
            ...(name !== undefined && { name }),
            ...changes,
            ...(isChanged && before && { version: { increment: 1 }, earlier: toEarlier(before) }),
            updatedAt: this.clock.now(),
          };
          return (await transaction.preset.updateMany({ where, data })).count;
        }),
      () => nameTaken(name),
    );
    if (count === 0) throw notFound("preset");
  }

  /** Rejects with NOT_FOUND. */
  async delete(ctx: RequestContext, id: string): Promise<string> {
    const { accountId } = requireKeyManager(ctx);
    const { count } = isUuid(id) ? await this.rows.deleteMany({ where: { id, accountId } }) : { count: 0 };
    if (count === 0) throw notFound("preset");
    return id;
  }

  private modelOf(ctx: RequestContext, model: string | null | undefined): string | null {
    return model === null || model === undefined ? null : this.catalog.resolve(requireKeyManager(ctx), model, "text").id;
  }

  /** Resolved for the caller that manages the preset, and again for each key that uses it. */
  private modelsOf(ctx: RequestContext, models: readonly string[] | null | undefined): string[] {
    const caller = requireKeyManager(ctx);
    return [...new Set((models ?? []).map((name) => this.catalog.resolve(caller, name, "text").id))];
  }

  private get rows() {
    return this.database.prisma.preset;
  }
}

function nameTaken(name: string | undefined): Error {
  return wrongField("name", `is taken: this account has a preset ${JSON.stringify(name)}`);
}

/** The earlier versions of a row, newest first. Empty when they were not selected. */
export function earlierOf({ earlier }: { readonly earlier?: unknown }): readonly EarlierPreset[] {
  return Array.isArray(earlier) ? (earlier as EarlierPreset[]) : [];
}

/** The versions to keep when the set changes: the newest, within both bounds. */
function toEarlier({ earlier, ...last }: EarlierPreset & { readonly earlier: unknown }): Prisma.InputJsonArray {
  const kept: EarlierPreset[] = [];
  let bytes = 0;
  for (const each of [last, ...earlierOf({ earlier })]) {
    bytes += Buffer.byteLength(JSON.stringify(each));
    if (kept.length === PRESET_EARLIER_MAX || bytes > PRESET_EARLIER_BYTES_MAX) break;
    kept.push(each);
  }
  return kept as unknown as Prisma.InputJsonArray;
}

/** Throws BAD_REQUEST for wishes that contradict each other. */
function toProvider(provider: z.output<typeof providerInput>): Prisma.InputJsonObject | typeof Prisma.DbNull {
  const stated = Object.fromEntries(Object.entries(provider ?? {}).filter(([, value]) => value !== null && value !== undefined));
  if (Object.keys(stated).length === 0) return Prisma.DbNull;
  assertAgreeing(stated);
  return stated as Prisma.InputJsonObject;
}

function toJson(parameters: z.output<typeof createPresetInput>["parameters"]): Prisma.InputJsonObject {
  return Object.fromEntries(
    Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined),
  ) as Prisma.InputJsonObject;
}
