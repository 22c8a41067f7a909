/** Amounts, durations and times in the pages' words: every number with its unit. */
import { formatNanocredits } from "../../lib/money.js";
import { type Html, html } from "./html.js";

/** `1 credit`, `0.5 credits`. */
export function credits(nanocredits: bigint): string {
  const amount = formatNanocredits(nanocredits);
  return `${amount} ${amount === "1" ? "credit" : "credits"}`;
}

/** `1 day`, `30 days`. */
export function days(count: number): string {
  return countOf(count, "day");
}

export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** 22 November 2026, 03:10 UTC. */
export function moment(date: Date): Html {
  const text = date.toISOString();
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
  return html`<time datetime="${text}">${day}, ${text.slice(11, 16)} UTC</time>`;
}
