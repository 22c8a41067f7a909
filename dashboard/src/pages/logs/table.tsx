/** The list of requests, a page at a time: the time to show a page does not depend on the length of the log. */
import { Anchor, Table, Text } from "@mantine/core";
import { useCallback, useMemo } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import type { LogRowFragment } from "../../client/generated/graphql.js";
import { Credits } from "../../ui/credits.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Loading } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { Wide } from "../../ui/wide.js";
import { FILTER_NAMES } from "./filters.js";
import { StatusBadge } from "./status-badge.js";
import { toLogsVariables } from "./variables.js";
import "./logs.css";

export function TableSkeleton() {
  return <Loading rows={8} height={34} />;
}

/** The list's query by the address, and addresses of its entries. Entries keep the list's filters and page. */
export function useLogAddress(path: string) {
  const [query, setQuery] = useSearchParams();
  const navigate = useNavigate();
  const text = query.toString();
  const search = text === "" ? "" : `?${text}`;
  const variables = useMemo(() => toLogsVariables(new URLSearchParams(text)), [text]);
  const close = useCallback(() => void navigate(path + search, { preventScrollReset: true }), [navigate, path, search]);
  const move = (after: string | null) =>
    setQuery((before) => {
      const next = new URLSearchParams(before);
      if (after === null) next.delete("after");
      else next.set("after", after);
      return next;
    });
  return {
    variables,
    close,
    move,
    isFiltered: FILTER_NAMES.some((name) => query.has(name)),
    entryAddress: (id: string) => `${path}/${encodeURIComponent(id)}${search}`,
  };
}

export interface LogTableProps {
  readonly log: {
    readonly nodes: readonly LogRowFragment[];
    readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
  } | null;
  readonly move: (after: string | null) => void;
  readonly isFiltered: boolean;
  readonly entryAddress: (id: string) => string;
}

export function LogTable({ log, move, isFiltered, entryAddress }: LogTableProps) {
  const [query] = useSearchParams();
  const navigate = useNavigate();
  const after = query.get("after");
  if (!log || (log.nodes.length === 0 && after === null)) {
    return isFiltered ? (
      <Empty title="No requests match your filters">Try a longer time range, fewer filters or the full ID.</Empty>
    ) : (
      <Empty title="No requests in the last 30 days">Requests appear here within a second, failed ones included.</Empty>
    );
  }
  return (
    <>
      <Wide label="Requests">
        <Table className="slim log-table" highlightOnHover verticalSpacing={6}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Status</Table.Th>
              <Table.Th>Time</Table.Th>
              <Table.Th visibleFrom="sm">Model</Table.Th>
              <Table.Th>Details</Table.Th>
              <Table.Th visibleFrom="sm">Key</Table.Th>
              <Table.Th ta="right" visibleFrom="sm">
                Duration
              </Table.Th>
              <Table.Th ta="right" visibleFrom="sm">
                Cost
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {log.nodes.map((row) => (
              // The link makes the row usable by keyboard.
              <Table.Tr key={row.id} onClick={() => void navigate(entryAddress(row.id), { preventScrollReset: true })}>
                <Table.Td>
                  <StatusBadge status={row.status} />
                </Table.Td>
                <Table.Td style={{ whiteSpace: "nowrap" }}>
                  <Anchor
                    component={Link}
                    to={entryAddress(row.id)}
                    preventScrollReset
                    fz="inherit"
                    onClick={(event) => event.stopPropagation()}
                  >
                    <When value={row.timestamp} />
                  </Anchor>
                </Table.Td>
                <Table.Td className="log-model" visibleFrom="sm">
                  <bdi>{row.modelId ?? "–"}</bdi>
                </Table.Td>
                <Table.Td className="log-details">
                  <RowDetails row={row} />
                  <Text size="xs" c="dimmed" hiddenFrom="sm" truncate>
                    {row.modelId}
                  </Text>
                </Table.Td>
                <Table.Td visibleFrom="sm" className="log-model">
                  <bdi>{row.apiKeyId === null ? "Session" : (row.apiKeyName ?? "–")}</bdi>
                </Table.Td>
                <Table.Td ta="right" visibleFrom="sm" style={{ whiteSpace: "nowrap" }}>
                  {row.milliseconds.toLocaleString("en")} ms
                </Table.Td>
                <Table.Td ta="right" visibleFrom="sm">
                  <Credits value={row.cost} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Wide>
      <Pager after={after} pageInfo={log.pageInfo} onMove={move} next="Older requests" />
    </>
  );
}

function RowDetails({ row: { code, message, leftOut, inputTokens, outputTokens } }: { readonly row: LogRowFragment }) {
  if (code === null) {
    const tokens = inputTokens + outputTokens;
    return <span className="soft">{tokens === 0 ? "–" : `${tokens.toLocaleString("en")} ${tokens === 1 ? "token" : "tokens"}`}</span>;
  }
  return (
    <>
      <Text span inherit fw={600}>
        {code}
      </Text>
      {leftOut > 0 && <span className="soft"> and {leftOut.toLocaleString("en")} more like it</span>}
      <Text size="xs" c="dimmed" truncate>
        {message}
      </Text>
    </>
  );
}
