/** The kinds of alerts, and the rules of an account: whether each is on, and its parameters (docs/spec/alerts.md#rules). */
import * as z from "zod";
import { isUuid } from "../../lib/ids.js";
import { isRecord } from "../../lib/json.js";
import { isStorableTime } from "../../lib/storable-time.js";
import { creditsAmount } from "../credits/credits-amount.js";
import { storableText } from "../requests/input.js";

export const ALERT_KINDS = ["spend_unusual", "budget_reached", "top_up_failed", "key_unused", "model_deprecated"] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

const DAYS_MAX = 365;
const SUBJECT_CHARS_MAX = 253;

/** Null: the kind has no such parameter. */
export interface RuleParameters {
  /** Percents of a budget, ascending. */
  readonly percents: readonly number[] | null;
  readonly days: number | null;
  /** Nanocredits: spend of an hour below it is never unusual. */
  readonly minimumSpend: bigint | null;
}

export interface AlertRule extends RuleParameters {
  readonly kind: AlertKind;
  readonly isEnabled: boolean;
}

const NONE: RuleParameters = { percents: null, days: null, minimumSpend: null };

/** Days before a model is retired, unless an account states others. */
export const MODEL_NOTICE_DAYS = 90;

const DEFAULTS: Readonly<Record<AlertKind, RuleParameters>> = {
  spend_unusual: { ...NONE, minimumSpend: 1_000_000_000n },
  budget_reached: { ...NONE, percents: [50, 80, 100] },
  top_up_failed: NONE,
  key_unused: { ...NONE, days: 90 },
  model_deprecated: { ...NONE, days: MODEL_NOTICE_DAYS },
};

const percent = z.int().min(1).max(100);

export const updateAlertRuleInput = z.strictObject({
  isEnabled: z.boolean().nullish(),
  percents: z.array(percent).min(1).max(10).nullish(),
  days: z.int().min(1).max(DAYS_MAX).nullish(),
  minimumSpend: creditsAmount.nullish(),
});
export type UpdateAlertRuleInput = z.output<typeof updateAlertRuleInput>;

export const silenceAlertsInput = z.strictObject({
  kind: z.enum(ALERT_KINDS),
  /** The key, model or top-up; absent or null: every one. */
  subjectId: storableText.min(1).max(SUBJECT_CHARS_MAX).nullish(),
  /** Absent or null: until it is ended. */
  until: z.iso
    .datetime({ offset: true })
    .refine((text) => isStorableTime(new Date(text)), "must be a time that can be stored")
    .nullish(),
});
export type SilenceAlertsInput = z.output<typeof silenceAlertsInput>;

export const unsilenceAlertsInput = silenceAlertsInput.omit({ until: true });
export type UnsilenceAlertsInput = z.output<typeof unsilenceAlertsInput>;

export const alertId = z.string().refine(isUuid, "must be the ID of an alert");

/** The stored rule, or the default one where none is stored. */
export function ruleOf(kind: AlertKind, stored: { readonly isEnabled: boolean; readonly parameters: unknown } | undefined): AlertRule {
  return { kind, isEnabled: stored?.isEnabled ?? true, ...withStored(DEFAULTS[kind], stored?.parameters) };
}

function withStored(defaults: RuleParameters, stored: unknown): RuleParameters {
  if (!isRecord(stored)) return defaults;
  const { percents, days, minimumSpend } = stored;
  return {
    percents: Array.isArray(percents) ? percents.map(Number) : defaults.percents,
    days: typeof days === "number" ? days : defaults.days,
    minimumSpend: typeof minimumSpend === "string" ? BigInt(minimumSpend) : defaults.minimumSpend,
  };
}

/** Names of parameters that the kind does not have. */
export function foreignParameters(kind: AlertKind, input: UpdateAlertRuleInput): readonly (keyof RuleParameters)[] {
  const names = ["percents", "days", "minimumSpend"] as const;
  return names.filter((name) => input[name] != null && DEFAULTS[kind][name] === null);
}

/** The parameters as they are stored. */
export function toStored({ percents, days, minimumSpend }: RuleParameters) {
  return {
    ...(percents !== null && { percents: [...new Set(percents)].sort((one, other) => one - other) }),
    ...(days !== null && { days }),
    ...(minimumSpend !== null && { minimumSpend: String(minimumSpend) }),
  };
}
