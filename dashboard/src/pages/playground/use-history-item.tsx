/** Stores results in the history. The address has the id of the shown result (`?made=`), so reloads and the back button restore it. */
import { Button, Group } from "@mantine/core";
import { useEffect, useRef } from "react";
import { useSearchParams } from "react-router";
import { useLive } from "../../shell/live.js";
import { newId, readItem, saveItem, useHistory } from "./history.js";
import type { HistoryContent, HistoryKind } from "./history-content.js";
import { HistoryDrawer } from "./history-drawer.js";

const PARAMETER = "made";
const TITLE_MAX = 200;

export interface HistoryItemOptions<Kind extends HistoryKind> {
  readonly kind: Kind;
  /** Plural, such as "images". */
  readonly things: string;
  /** Shows a stored result, or null for an empty page. */
  readonly show: (content: HistoryContent[Kind] | null) => void;
  /** More parameters for the address. */
  readonly parametersOf?: (content: HistoryContent[Kind]) => Parameters;
}

type Parameters = Readonly<Record<string, string | null>>;

export function useHistoryItem<Kind extends Exclude<HistoryKind, "chat">>(options: HistoryItemOptions<Kind>) {
  const { kind, things } = options;
  const account = useLive().me?.restId ?? null;
  const [search, setSearch] = useSearchParams();
  const history = useHistory(account, kind);
  const id = useRef<string | null>(null);
  const now = useRef(options);
  now.current = options;

  const shownId = search.get(PARAMETER);
  useEffect(() => {
    if (account === null || shownId === id.current) return;
    id.current = shownId;
    if (shownId === null) return now.current.show(null);
    void readItem(account, kind, shownId).then((found) => {
      if (id.current !== shownId) return;
      now.current.show(found?.content ?? null);
      if (!found) return;
      const [model = null] = found.models;
      const parameters = now.current.parametersOf?.(found.content);
      setSearch((before) => withParameters(before, { model, ...parameters }), { replace: true });
    });
  }, [account, shownId, kind, setSearch]);

  const save = (title: string, model: string, content: HistoryContent[Kind]) => {
    const itemId = newId();
    id.current = itemId;
    const parameters = options.parametersOf?.(content);
    setSearch((before) => withParameters(before, { [PARAMETER]: itemId, ...parameters }), { replace: true, preventScrollReset: true });
    if (account !== null) void saveItem(account, kind, { id: itemId, title: title.trim().slice(0, TITLE_MAX), models: [model], content });
  };
  const leave = () =>
    setSearch((before) => {
      const model = before.get("model");
      return model === null ? {} : { model };
    });
  const bar = (
    <Group gap="xs" justify="flex-end">
      <Button variant="default" size="compact-sm" onClick={leave} disabled={shownId === null}>
        New
      </Button>
      <HistoryDrawer
        history={history}
        current={shownId}
        parameter={PARAMETER}
        things={things}
        onDeleted={(ids) => {
          if (shownId !== null && ids.includes(shownId)) leave();
        }}
      />
    </Group>
  );
  return { save, bar };
}

function withParameters(search: URLSearchParams, parameters: Parameters): URLSearchParams {
  const next = new URLSearchParams(search);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null) next.delete(name);
    else next.set(name, value);
  }
  return next;
}
