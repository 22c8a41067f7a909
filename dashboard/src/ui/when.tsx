/** Relative time, such as "3 minutes ago". The tooltip has the exact time. */
import { Table, type TableTdProps } from "@mantine/core";
import { useSyncExternalStore } from "react";
import { Listeners } from "../client/listeners.js";

// Made on first use: a slow processor takes some 20 ms for each.
const relative = onFirstUse(() => new Intl.RelativeTimeFormat("en", { numeric: "auto" }));
const absolute = onFirstUse(() => new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" }));
const date = onFirstUse(() => new Intl.DateTimeFormat("en", { dateStyle: "medium" }));

function onFirstUse<Made>(make: () => Made): () => Made {
  let made: Made | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The exact time in the reader's zone. */
export function exactTime(iso: string): string {
  return absolute().format(new Date(iso));
}

const STEPS: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number])[] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const DAYS_RELATIVE_MAX = 14;

// One timer for all relative times of the page.
const TICK_MS = 10_000;
let now = Date.now();
const listeners = new Listeners();
setInterval(() => {
  now = Date.now();
  listeners.notify();
}, TICK_MS);

function useNow(): number {
  return useSyncExternalStore(listeners.add, () => now);
}

function describeMoment(iso: string, at: number): string {
  const moment = Date.parse(iso);
  // Events of the last seconds may be later than the last tick.
  const seconds = (moment - (moment > at ? Date.now() : at)) / 1_000;
  if (Math.abs(seconds) > DAYS_RELATIVE_MAX * 86_400) return date().format(new Date(iso));
  for (const [unit, size] of STEPS) if (Math.abs(seconds) >= size) return relative().format(Math.trunc(seconds / size), unit);
  return seconds > 5 ? relative().format(Math.trunc(seconds), "second") : "just now";
}

export interface WhenProps {
  readonly value: string | null | undefined;
  readonly fallback?: string;
}

export function When({ value, fallback = "Never" }: WhenProps) {
  const at = useNow();
  if (value === null || value === undefined) return <span className="soft">{fallback}</span>;
  return (
    <time dateTime={value} onPointerEnter={({ currentTarget }) => (currentTarget.title = exactTime(value))}>
      {describeMoment(value, at)}
    </time>
  );
}

/** Relative time in a table cell. */
export function WhenCell({ visibleFrom, ...when }: WhenProps & Pick<TableTdProps, "visibleFrom">) {
  return (
    <Table.Td style={{ whiteSpace: "nowrap" }} {...(visibleFrom && { visibleFrom })}>
      <When {...when} />
    </Table.Td>
  );
}
