import type { AlertKind, AlertRuleLineFragment } from "../../client/generated/graphql.js";

/** Labels of the kinds of alerts, and a sentence about each. */
export const KINDS: Readonly<Record<AlertKind, { readonly label: string; readonly description: string }>> = {
  SPEND_UNUSUAL: { label: "Unusual spend", description: "The spend of an hour is far above that of the same hour in the past weeks." },
  BUDGET_REACHED: { label: "Budget reached", description: "A key has spent a part of its budget." },
  TOP_UP_FAILED: { label: "Top-up failed", description: "The payment of an automatic top-up has failed." },
  KEY_UNUSED: { label: "Unused key", description: "No program has used a key for some time." },
  MODEL_DEPRECATED: { label: "Model retired", description: "A model that this account uses will be removed." },
};

/** The field of a rule that can be changed; null: none. */
export function parameterOf({ kind, percents, days, minimumSpend }: AlertRuleLineFragment) {
  if (percents !== null) return { name: "percents", label: "Percentages of a budget", text: percents.join(", ") } as const;
  if (days !== null) {
    const label = kind === "MODEL_DEPRECATED" ? "Days before the model is retired" : "Days without use";
    return { name: "days", label, text: String(days) } as const;
  }
  if (minimumSpend !== null) return { name: "minimumSpend", label: "Least spend of an hour in credits", text: minimumSpend } as const;
  return null;
}
