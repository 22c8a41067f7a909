/** The variable TIERS: the credits that tiers refill. */
import { z } from "zod";
import { toPlainDecimal } from "../lib/money.js";
import { credits } from "./values.js";

export const DEFAULT_TIERS =
  '[{"name":"free","credits":1,"period":"day"},{"name":"plus","credits":5,"period":"day"},{"name":"pro","credits":20,"period":"day"}]';

export function tiers() {
  const tier = z.strictObject({
    name: z.string().min(1),
    credits: z.union([z.string(), z.number().transform((number) => toPlainDecimal(number) ?? "")]).pipe(credits()),
    period: z.enum(["hour", "day", "week", "month"]).nullable().default(null),
  });
  return z
    .array(tier.transform(({ name, credits: nanocredits, period }) => ({ name, nanocredits, period })))
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, "must not name a tier twice")
    .refine((all) => all.some(({ name }) => name === "free"), "must have a tier named free, which new accounts are given");
}
