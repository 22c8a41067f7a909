/**
 * Form state for an object that another tab or program may change meanwhile. Edited fields keep the input, other fields follow the server,
 * and a warning lists the changes before the user overwrites them.
 */
import { Alert, List } from "@mantine/core";
import { useState } from "react";

type Fields = object;

export interface Edited<T extends Fields> {
  readonly draft: T;
  /** Last known server values. Fields of the draft that differ were edited here. */
  readonly base: T;
  readonly set: (changes: Partial<T>) => void;
  /** Fields that changed on the server since editing began. */
  readonly elsewhere: readonly Change[];
  /** Whether the user has seen the server values in `fresh`. */
  readonly isUpToDate: (fresh: T) => boolean;
}

interface Change {
  readonly label: string;
  /** Server value of a text field that was edited here as well, otherwise null. */
  readonly now: string | null;
}

const SHOWN_CHARS_MAX = 200;

/** Fields without a label follow the server without a warning. */
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
  const labelled = (fields: T) => namesOf(fields).filter((name) => labels[name] !== undefined);
  return {
    draft,
    base,
    set: (changes) => setDraft((before) => ({ ...before, ...changes })),
    elsewhere,
    isUpToDate: (fresh) => labelled(fresh).every((name) => isSame(base[name], fresh[name])),
  };
}

export function ChangedElsewhere({ changes }: { readonly changes: readonly Change[] }) {
  if (changes.length === 0) return <div role="status" />;
  return (
    <div role="status">
      <Alert color="orange" variant="light" title="Changed elsewhere while you were editing">
        Your edits are kept and overwrite these changes when you save. All other fields show the latest values.
        <List size="sm" mt="xs">
          {changes.map(({ label, now }) => (
            <List.Item key={label} className="any-wrap">
              {label}
              {now !== null && (
                <>
                  : now <bdi>“{now}”</bdi>
                </>
              )}
            </List.Item>
          ))}
        </List>
      </Alert>
    </div>
  );
}

/** Applies the edits between `base` and `draft` to `current`. Records are merged entry by entry. */
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
