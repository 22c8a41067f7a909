/**
 * What is edited here while another tab or a program may change it: what is typed stays, what is not touched follows, and whoever edits is
 * told before they replace what they have not seen.
 */
import { Alert, List } from "@mantine/core";
import { useState } from "react";

type Fields = object;

export interface Edited<T extends Fields> {
  readonly draft: T;
  /** What it was made of: what differs from it is typed here. */
  readonly base: T;
  readonly set: (changes: Partial<T>) => void;
  /** Changed elsewhere since this began, as it is now, by the names that were given. */
  readonly elsewhere: readonly Change[];
  /** True when this is as the gateway has it, by what it has just said. */
  readonly isUpToDate: (fresh: T) => boolean;
}

interface Change {
  readonly label: string;
  /** Null: it is no short text, or it is not typed here. */
  readonly now: string | null;
}

const SHOWN_CHARS_MAX = 200;

/** `labels`: of the fields whose change is told of; the others follow silently. */
export function useEdited<T extends Fields>(current: T, labels: Readonly<Partial<Record<keyof T, string>>>): Edited<T> {
  const [base, setBase] = useState(current);
  const [draft, setDraft] = useState(current);
  const [changed, setChanged] = useState<ReadonlySet<keyof T>>(new Set());
  if (!isSame(base, current)) {
    const names = namesOf(current).filter((name) => !isSame(base[name], current[name]));
    setChanged(new Set([...changed, ...names]));
    setDraft(rebase(base, draft, current));
    setBase(current);
  }
  const elsewhere = [...changed].flatMap((name): Change[] => {
    const label = labels[name];
    const value = base[name];
    const isTyped = !isSame(draft[name], value);
    return label === undefined ? [] : [{ label, now: isTyped && typeof value === "string" ? value.slice(0, SHOWN_CHARS_MAX) : null }];
  });
  const told = (fields: T) => namesOf(fields).filter((name) => labels[name] !== undefined);
  return {
    draft,
    base,
    set: (changes) => setDraft((before) => ({ ...before, ...changes })),
    elsewhere,
    isUpToDate: (fresh) => told(fresh).every((name) => isSame(base[name], fresh[name])),
  };
}

/** Above a form. */
export function ChangedElsewhere({ changes }: { readonly changes: readonly Change[] }) {
  if (changes.length === 0) return <div role="status" />;
  return (
    <div role="status">
      <Alert color="orange" variant="light" title="This was changed elsewhere while you edit it">
        What you have typed stays, and replaces it when you save. What you have not touched is shown as it is now.
        <List size="sm" mt="xs">
          {changes.map(({ label, now }) => (
            <List.Item key={label} className="any-wrap">
              {label}
              {now !== null && (
                <>
                  , which is now <bdi>“{now}”</bdi>
                </>
              )}
            </List.Item>
          ))}
        </List>
      </Alert>
    </div>
  );
}

/** What was typed on `base`, on what it is now; records by their entries. */
function rebase<T extends Fields>(base: T, draft: T, current: T): T {
  const entries = namesOf(current).map((name) => {
    const [was, typed, now] = [base[name], draft[name], current[name]];
    if (isSame(was, typed)) return [name, now] as const;
    return [name, isRecord(was) && isRecord(typed) && isRecord(now) ? rebaseRecord(was, typed, now) : typed] as const;
  });
  return { ...current, ...Object.fromEntries(entries) };
}

function rebaseRecord(was: Record<string, unknown>, typed: Record<string, unknown>, now: Record<string, unknown>) {
  const names = [...new Set([...Object.keys(typed), ...Object.keys(now)])];
  return Object.fromEntries(names.map((name) => [name, isSame(was[name], typed[name]) ? now[name] : typed[name]]));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const namesOf = <T extends Fields>(fields: T) => Object.keys(fields) as (keyof T)[];
const isSame = (one: unknown, other: unknown) => one === other || JSON.stringify(one) === JSON.stringify(other);
