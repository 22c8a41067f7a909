/** Table of a model's prices, each with the date from which it applied. */
import { Table, Text } from "@mantine/core";
import type { ModelsOneQuery } from "../../client/generated/graphql.js";
import { formatCredits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { type PricedKind, perMillion, pricesOf } from "../../ui/prices.js";
import { When } from "../../ui/when.js";
import { Wide } from "../../ui/wide.js";

type Change = NonNullable<ModelsOneQuery["model"]>["priceHistory"][number];

const MAIN_KINDS: readonly PricedKind[] = ["inputTextTokens", "outputTextTokens"];

export function PriceHistoryCard({ changes }: { readonly changes: readonly Change[] }) {
  const columns = columnsOf(changes);
  return (
    <Card title="Price history">
      {changes.length === 0 ? (
        <Text c="dimmed">No prices on record yet.</Text>
      ) : (
        <Wide label="Price history">
          <Table verticalSpacing="xs">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Since</Table.Th>
                {columns.map(({ kind, traits, per }) => (
                  <Table.Th key={kind} ta="right">
                    {traits.label}{" "}
                    <Text span size="xs" c="dimmed" fw={400}>
                      {per}
                    </Text>
                  </Table.Th>
                ))}
                {columns.length === 0 && <Table.Th ta="right">Price</Table.Th>}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {changes.map(({ since, pricing }, row) => (
                <Table.Tr key={since}>
                  <Table.Td style={{ whiteSpace: "nowrap" }}>
                    <When value={since} />
                    {row === 0 && (
                      <Text span size="xs" c="dimmed">
                        {" "}
                        (current)
                      </Text>
                    )}
                  </Table.Td>
                  {columns.map(({ kind, traits }) => (
                    <Table.Td key={kind} ta="right">
                      <Change exact={pricing[kind]} before={changes[row + 1]?.pricing[kind]} isPerMillion={isPerMillion(traits.unit)} />
                    </Table.Td>
                  ))}
                  {columns.length === 0 && <Table.Td ta="right">Free</Table.Td>}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Wide>
      )}
    </Card>
  );
}

const isPerMillion = (unit: string) => unit === "tokens" || unit === "characters";

function Change({
  exact,
  before,
  isPerMillion,
}: {
  readonly exact: string | null;
  readonly before: string | null | undefined;
  readonly isPerMillion: boolean;
}) {
  if (exact === null) return <>–</>;
  const price = isPerMillion ? perMillion(exact) : exact;
  const change = before === null || before === undefined || Number(before) === 0 ? 0 : Number(exact) / Number(before) - 1;
  return (
    <span title={`${price} credits`}>
      {formatCredits(price)}
      {change !== 0 && (
        <Text span size="xs" c="dimmed">
          {" "}
          {change > 0 ? "+" : "−"}
          {Math.abs(change * 100).toLocaleString("en", { maximumFractionDigits: 1 })}%
        </Text>
      )}
    </span>
  );
}

/** The text prices, or of a model without them all prices; and each price that has changed. */
function columnsOf(changes: readonly Change[]) {
  const seen = new Map(changes.flatMap(({ pricing }) => pricesOf(pricing).map((price) => [price.kind, price] as const)));
  const pricesIn = (kind: PricedKind) => new Set(changes.map(({ pricing }) => pricing[kind]));
  const isPriced = (kind: PricedKind) => [...pricesIn(kind)].some((price) => Number(price ?? 0) > 0);
  const main = MAIN_KINDS.filter(isPriced);
  return [...seen.values()].filter(({ kind }) => isPriced(kind) && (main.length === 0 || main.includes(kind) || pricesIn(kind).size > 1));
}
