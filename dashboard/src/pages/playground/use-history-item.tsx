/** What was made of a kind: kept in this browser, shown by the address (`?made=`), found again after a reload and by the back button. */
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
  /** Such as "pictures". */
  readonly things: string;
  /** Shows what the address names, or null for nothing. */
  readonly show: (content: HistoryContent[Kind] | null) => void;
  /** What stands beside it in the address. */
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

  const asked = search.get(PARAMETER);
  useEffect(() => {
    if (account === null || asked === id.current) return;
    id.current = asked;
    if (asked === null) return now.current.show(null);
    void readItem(account, kind, asked).then((found) => {
      if (id.current !== asked) return;
      now.current.show(found?.content ?? null);
      if (!found) return;
      const [model = null] = found.models;
      const beside = now.current.parametersOf?.(found.content);
      setSearch((before) => withParameters(before, { model, ...beside }), { replace: true });
    });
  }, [account, asked, kind, setSearch]);

  const save = (title: string, model: string, content: HistoryContent[Kind]) => {
    const made = newId();
    id.current = made;
    const beside = options.parametersOf?.(content);
    setSearch((before) => withParameters(before, { [PARAMETER]: made, ...beside }), { replace: true, preventScrollReset: true });
    if (account !== null) void saveItem(account, kind, { id: made, title: title.trim().slice(0, TITLE_MAX), models: [model], content });
  };
  const leave = () =>
    setSearch((before) => {
      const model = before.get("model");
      return model === null ? {} : { model };
    });
  const bar = (
    <Group gap="xs" justify="flex-end">
      <Button variant="default" size="compact-sm" onClick={leave} disabled={asked === null}>
        New
      </Button>
      <HistoryDrawer
        history={history}
        current={asked}
        parameter={PARAMETER}
        things={things}
        onDeleted={(ids) => {
          if (asked !== null && ids.includes(asked)) leave();
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
