/** Spend of all accounts in a month, by account, key or model. */

import { ChevronLeftIcon, ChevronRightIcon } from "@heroicons/react/24/outline";
import { ActionIcon, Anchor, Group, SegmentedControl, Stack, Table, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useMemo } from "react";
import { Link, useSearchParams } from "react-router";
import { useAnswer } from "../../client/answer.js";
import {
  OperatorSpendDocument,
  type OperatorSpendQuery,
  type OperatorSpendQueryVariables,
  type SpendGrouping,
  type SpendOrderField,
} from "../../client/generated/graphql.js";
import { Credits } from "../../ui/credits.js";
import { DownloadButton } from "../../ui/download.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { Wide } from "../../ui/wide.js";
import { accountAddress, OPERATOR, OperatorPage } from "./parts.js";

const ROWS = 200;
const MONTH_PATTERN = /^2\d{3}-(?:0[1-9]|1[0-2])$/;
const NAME = new Intl.DateTimeFormat("en", { month: "long", year: "numeric", timeZone: "UTC" });

const GROUPINGS: ReadonlyMap<string, { readonly label: string; readonly by: SpendGrouping }> = new Map([
  ["account", { label: "Account", by: "ACCOUNT" }],
  ["key", { label: "Key", by: "KEY" }],
  ["model", { label: "Model", by: "MODEL" }],
]);
interface Column {
  readonly label: string;
  readonly field: SpendOrderField;
  /** Hidden on a phone. */
  readonly isForWide?: true;
}

const COLUMNS: ReadonlyMap<string, Column> = new Map<string, Column>([
  ["requests", { label: "Requests", field: "REQUESTS" }],
  ["input", { label: "Input tokens", field: "INPUT_TOKENS", isForWide: true }],
  ["output", { label: "Output tokens", field: "OUTPUT_TOKENS", isForWide: true }],
  ["spend", { label: "Spend", field: "COST" }],
]);

const thisMonth = () => new Date().toISOString().slice(0, 7);

function moveMonth(month: string, by: number): string {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number - 1 + by)).toISOString().slice(0, 7);
}

/** Month, grouping and order in the address. Unknown values are ignored. */
function readView(query: URLSearchParams) {
  const month = query.get("month") ?? "";
  const by = query.get("by") ?? "";
  const sort = query.get("sort") ?? "";
  return {
    month: MONTH_PATTERN.test(month) ? month : thisMonth(),
    by: GROUPINGS.has(by) ? by : "account",
    sort: COLUMNS.has(sort) || sort === "name" ? sort : "spend",
    isAscending: query.get("order") === "asc",
  };
}

export function toSpendVariables(query: URLSearchParams): OperatorSpendQueryVariables {
  const { month, by, sort, isAscending } = readView(query);
  return {
    month,
    by: GROUPINGS.get(by)?.by ?? "ACCOUNT",
    orderBy: { field: sort === "name" ? "NAME" : (COLUMNS.get(sort)?.field ?? "COST"), direction: isAscending ? "ASC" : "DESC" },
    first: ROWS,
  };
}

type Spend = NonNullable<OperatorSpendQuery["spend"]>;

export function SpendPage() {
  const [query, setQuery] = useSearchParams();
  const { month, by, sort, isAscending } = readView(query);
  const variables = useMemo(() => toSpendVariables(query), [query]);
  const answer = useAnswer({ query: OperatorSpendDocument, variables });
  const set = (changes: Readonly<Record<string, string>>) =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        for (const [name, value] of Object.entries(changes)) next.set(name, value);
        return next;
      },
      { preventScrollReset: true },
    );
  /** A click on the sorted column turns the order around. Names begin with A, amounts with the highest. */
  const onSort = (column: string) =>
    set({ sort: column, order: column === sort ? (isAscending ? "desc" : "asc") : column === "name" ? "asc" : "desc" });
  return (
    <OperatorPage
      title="Spend"
      description="Credits that all accounts were charged in a month (UTC)."
      above={[{ label: "Operator", to: OPERATOR }]}
      actions={
        <DownloadButton path={`/account/operator/spend?${new URLSearchParams({ by, month, format: "csv" })}`}>Download CSV</DownloadButton>
      }
    >
      <Card>
        <Stack gap="sm">
          <Group gap="sm" align="flex-end">
            <Group gap={4} align="flex-end" wrap="nowrap">
              <ActionIcon variant="default" size={36} onClick={() => set({ month: moveMonth(month, -1) })} aria-label="Previous month">
                <ChevronLeftIcon width={16} />
              </ActionIcon>
              <TextInput
                type="month"
                label="Month"
                value={month}
                max={thisMonth()}
                onChange={({ target }) => MONTH_PATTERN.test(target.value) && set({ month: target.value })}
                w={170}
              />
              <ActionIcon
                variant="default"
                size={36}
                onClick={() => set({ month: moveMonth(month, 1) })}
                disabled={month >= thisMonth()}
                aria-label="Next month"
              >
                <ChevronRightIcon width={16} />
              </ActionIcon>
            </Group>
            <SegmentedControl
              value={by}
              onChange={(value) => set({ by: value })}
              data={[...GROUPINGS].map(([value, { label }]) => ({ value, label }))}
              aria-label="Group by"
            />
          </Group>
          <QueryView answer={answer} loading={<Loading rows={8} height={34} />}>
            {({ spend }) =>
              spend &&
              (spend.groups.length === 0 ? (
                <Empty title={`No spend in ${NAME.format(new Date(`${spend.month}-01`))}`} />
              ) : (
                <SpendTable spend={spend} by={by} sort={sort} isAscending={isAscending} onSort={onSort} />
              ))
            }
          </QueryView>
        </Stack>
      </Card>
    </OperatorPage>
  );
}

interface SpendTableProps {
  readonly spend: Spend;
  readonly by: string;
  readonly sort: string;
  readonly isAscending: boolean;
  readonly onSort: (column: string) => void;
}

function SpendTable({ spend: { groups, groupCount, total }, by, ...order }: SpendTableProps) {
  return (
    <>
      <Wide label="Spend">
        <Table className="slim" verticalSpacing="xs" highlightOnHover>
          <Table.Thead>
            <Table.Tr>
              <Heading column="name" label={GROUPINGS.get(by)?.label ?? ""} {...order} />
              {[...COLUMNS].map(([column, { label, isForWide = false }]) => (
                <Heading key={column} column={column} label={label} isAmount isForWide={isForWide} {...order} />
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {groups.map((group) => (
              <Table.Tr key={`${group.accountId} ${group.apiKeyId} ${group.modelId}`}>
                <Table.Td miw={120}>
                  <Name group={group} by={by} />
                </Table.Td>
                <Amounts sums={group} />
              </Table.Tr>
            ))}
          </Table.Tbody>
          <Table.Tfoot>
            <Table.Tr fw={600}>
              <Table.Th scope="row">Total</Table.Th>
              <Amounts sums={total} />
            </Table.Tr>
          </Table.Tfoot>
        </Table>
      </Wide>
      {groupCount > groups.length && (
        <Text size="sm" c="dimmed" role="status">
          Showing {groups.length} of {groupCount.toLocaleString("en")}. The total and the CSV file include all.
        </Text>
      )}
    </>
  );
}

function Heading({
  column,
  label,
  isAmount = false,
  isForWide = false,
  sort,
  isAscending,
  onSort,
}: { readonly column: string; readonly label: string; readonly isAmount?: boolean; readonly isForWide?: boolean } & Omit<
  SpendTableProps,
  "spend" | "by"
>) {
  const isSorted = column === sort;
  return (
    <Table.Th
      {...(isForWide && { visibleFrom: "sm" })}
      ta={isAmount ? "right" : "left"}
      aria-sort={isSorted ? (isAscending ? "ascending" : "descending") : "none"}
    >
      <UnstyledButton onClick={() => onSort(column)} fz="inherit" fw="inherit" style={{ whiteSpace: "nowrap" }}>
        {label}
        <span aria-hidden>{isSorted ? (isAscending ? " ↑" : " ↓") : ""}</span>
      </UnstyledButton>
    </Table.Th>
  );
}

function Name({ group, by }: { readonly group: Spend["groups"][number]; readonly by: string }) {
  const { accountId, handle, email, apiKeyId, apiKeyName, modelId } = group;
  if (by === "model" || accountId === null) return <bdi className="any-wrap">{modelId}</bdi>;
  const address = accountAddress(accountId);
  if (by === "account") {
    return (
      <>
        <Anchor component={Link} to={address} inherit className="any-wrap">
          <bdi>{handle ?? accountId}</bdi>
        </Anchor>
        {email !== null && email !== handle && (
          <Text size="xs" c="dimmed" className="any-wrap">
            {email}
          </Text>
        )}
      </>
    );
  }
  return (
    <>
      {apiKeyId === null ? (
        "Sessions"
      ) : (
        <Anchor component={Link} to={`${address}?${new URLSearchParams({ key: apiKeyId })}`} inherit className="any-wrap">
          <bdi>{apiKeyName ?? apiKeyId}</bdi>
        </Anchor>
      )}
      <Text size="xs" c="dimmed" className="any-wrap">
        <bdi>{handle ?? accountId}</bdi>
      </Text>
    </>
  );
}

function Amounts({ sums }: { readonly sums: Pick<Spend["total"], "requests" | "inputTokens" | "outputTokens" | "cost"> }) {
  return (
    <>
      {[sums.requests, sums.inputTokens, sums.outputTokens].map((amount, index) => (
        // The columns never change their order. Tokens are hidden on a phone.
        <Table.Td key={index} ta="right" {...(index > 0 && { visibleFrom: "sm" })}>
          {amount.toLocaleString("en")}
        </Table.Td>
      ))}
      <Table.Td ta="right">
        <Credits value={sums.cost} />
      </Table.Td>
    </>
  );
}
