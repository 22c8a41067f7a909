/**
 * What an HTTP broker answers, read leniently: fields that it adds are passed over, those that only decorate may be missing. What it
 * lists is `{ data: [...] }`; `items` for `data`, and the bare list, are taken too.
 */
import * as z from "zod";
import { CONNECTED_APP_STATUSES, type ConnectedApp, type ConnectedAppStatus, type Toolkit } from "./broker.js";
import { BROKER_ID_CHARS_MAX } from "./limits.js";

/** Stands in a path: visible ASCII, and no dot segment. */
const id = z
  .string()
  .max(BROKER_ID_CHARS_MAX)
  .regex(/^(?!\.{1,2}$)[\x21-\x7e]+$/);
const slug = z.string().min(1).max(BROKER_ID_CHARS_MAX);
const text = z
  .string()
  .nullish()
  .transform((value) => value || null);
const webUrl = z.url({ protocol: /^https?$/ });
/** Clients put it into pages: anything but a web address counts as none. */
const logo = webUrl.nullish().catch(null);
/** One that we do not know is not one with which the app can be used. */
const status = z.string().transform((value): ConnectedAppStatus => {
  const known = value.toLowerCase();
  if (known === "initializing") return "initiated";
  return CONNECTED_APP_STATUSES.find((each) => each === known) ?? "inactive";
});

const toolkit = z
  .object({ slug, name: text, description: text, logo })
  .transform(
    (row): Toolkit => ({ slug: row.slug, name: row.name ?? row.slug, description: row.description ?? "", logo: row.logo ?? null }),
  );

const connection = z
  .object({ id, toolkit: slug, name: text, description: text, logo, alias: text, status, account: z.string().nullish() })
  .transform(({ account, ...row }): { account: string | null; app: ConnectedApp } => ({
    account: account ?? null,
    app: { ...row, description: row.description ?? "", logo: row.logo ?? null },
  }));

function listOf<Row>(row: z.ZodType<Row>) {
  const rows = z.array(row);
  return z.union([rows, z.object({ data: rows }).transform(({ data }) => data), z.object({ items: rows }).transform(({ items }) => items)]);
}

export const toolkitsAnswer = listOf(toolkit);
/** `account` is whose it is, where the broker says so. */
export const connectionsAnswer = listOf(connection);
export const connectAnswer = z.object({ id, url: webUrl });
