/** Purchases of credits with their refunds and disputes, and the processor's invoices. */
import { Alert, Anchor, Badge, Button, Stack, Table, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { useMutation } from "urql";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import {
  CreateBillingPortalDocument,
  CreditsInvoicesDocument,
  CreditsPurchasesDocument,
  type CreditsPurchasesQuery,
  type InvoiceStatus,
  type TopUpState,
} from "../../client/generated/graphql.js";
import { useLive } from "../../shell/live.js";
import { Credits, formatCredits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Failure, QueryView } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { Wide } from "../../ui/wide.js";

type TopUp = NonNullable<NonNullable<CreditsPurchasesQuery["me"]>["topUps"]>["nodes"][number];

const STATES: Readonly<Record<TopUpState, { readonly label: string; readonly color: string }>> = {
  OPEN: { label: "Not paid yet", color: "gray" },
  EXPIRED: { label: "Expired", color: "gray" },
  PAID: { label: "Paid", color: "teal" },
  REFUNDED: { label: "Refunded", color: "orange" },
  DISPUTED: { label: "Disputed", color: "red" },
  CANCELLED: { label: "Cancelled", color: "gray" },
  FAILED: { label: "Failed", color: "red" },
};
const INVOICE_STATES: Readonly<Record<InvoiceStatus, string>> = {
  DRAFT: "Draft",
  OPEN: "Open",
  PAID: "Paid",
  VOID: "Void",
  UNCOLLECTIBLE: "Uncollectible",
};

/** Refetches when the balance changes, as it does with each payment. */
function useRefetchWithBalance(refetch: () => void): void {
  const available = useLive().balance?.available;
  useEffect(() => {
    if (available !== undefined) refetch();
  }, [available, refetch]);
}

export function Purchases({ changedAt }: { readonly changedAt: number }) {
  const [after, setAfter] = useState<string | null>(null);
  const answer = useAnswer({ query: CreditsPurchasesDocument, variables: after === null ? {} : { after } });
  useRefetchWithBalance(answer.refetch);
  useRefetchOnChange(changedAt, answer.refetch);
  return (
    <Card title="Purchases">
      <QueryView answer={answer}>
        {({ me }) => {
          const { nodes = [], pageInfo } = me?.topUps ?? {};
          if (nodes.length === 0) return <Empty title="No purchases yet">Credits that you buy appear here.</Empty>;
          return (
            <Stack gap="sm">
              {nodes.some(({ state }) => state === "DISPUTED") && (
                <Alert color="red" title="A payment is disputed">
                  The bank took a payment back, or asks for it. The credits of that payment were taken from your balance. Contact the
                  operator of this gateway if this is a mistake.
                </Alert>
              )}
              <PurchaseTable rows={nodes} />
              <Pager after={after} pageInfo={pageInfo} onMove={setAfter} next="Older purchases" />
            </Stack>
          );
        }}
      </QueryView>
    </Card>
  );
}

function PurchaseTable({ rows }: { readonly rows: readonly TopUp[] }) {
  return (
    <Wide label="Purchases">
      <Table className="slim" verticalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Date</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th ta="right">Credits</Table.Th>
            <Table.Th ta="right">Price</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ id, state, credits, refunded, disputed, amount, currency, isAutomatic, failure, createdAt }) => (
            <Table.Tr key={id}>
              <Table.Td>
                <When value={createdAt} />
              </Table.Td>
              <Table.Td>
                <Badge variant="light" color={STATES[state].color}>
                  {STATES[state].label}
                </Badge>
                {isAutomatic && (
                  <Text size="xs" c="dimmed">
                    Automatic
                  </Text>
                )}
                {failure !== null && (
                  <Text size="xs" c="dimmed" className="any-wrap">
                    {failure}
                  </Text>
                )}
              </Table.Td>
              <Table.Td ta="right">
                <Credits value={credits} />
                {refunded !== "0" && (
                  <Text size="xs" c="dimmed">
                    {formatCredits(refunded)} refunded
                  </Text>
                )}
                {disputed !== "0" && (
                  <Text size="xs" c="dimmed">
                    {formatCredits(disputed)} disputed
                  </Text>
                )}
              </Table.Td>
              <Table.Td ta="right">
                {amount} {currency.toUpperCase()}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Wide>
  );
}

export function Invoices({ hasPortal }: { readonly hasPortal: boolean }) {
  const answer = useAnswer({ query: CreditsInvoicesDocument });
  useRefetchWithBalance(answer.refetch);
  return (
    <Card title="Invoices" {...(hasPortal && { actions: <PortalButton /> })}>
      <QueryView answer={answer}>
        {({ me }) => {
          const invoices = me?.invoices ?? [];
          if (invoices.length === 0) return <Empty title="No invoices yet">Invoices of your purchases appear here.</Empty>;
          return (
            <Wide label="Invoices">
              <Table className="slim" verticalSpacing="xs">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Number</Table.Th>
                    <Table.Th>Date</Table.Th>
                    <Table.Th>Status</Table.Th>
                    <Table.Th ta="right">Total</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {invoices.map(({ number, status, amount, currency, issuedAt, url, pdfUrl }) => (
                    <Table.Tr key={number}>
                      <Table.Td>
                        {url === null ? number : <OutsideLink href={url}>{number}</OutsideLink>}
                        {pdfUrl !== null && (
                          <>
                            {" "}
                            <OutsideLink href={pdfUrl}>PDF</OutsideLink>
                          </>
                        )}
                      </Table.Td>
                      <Table.Td>
                        <When value={issuedAt} />
                      </Table.Td>
                      <Table.Td>{INVOICE_STATES[status]}</Table.Td>
                      <Table.Td ta="right">
                        {amount} {currency.toUpperCase()}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Wide>
          );
        }}
      </QueryView>
    </Card>
  );
}

function OutsideLink({ href, children }: { readonly href: string; readonly children: string }) {
  return (
    <Anchor href={href} target="_blank" rel="noopener noreferrer" size="sm" underline="always">
      {children}
    </Anchor>
  );
}

function PortalButton() {
  const [{ fetching, error }, open] = useMutation(CreateBillingPortalDocument);
  const go = async () => {
    const { data } = await open({});
    if (data?.createBillingPortal) window.location.assign(data.createBillingPortal.url);
  };
  return (
    <Stack gap="xs">
      <Button variant="default" size="xs" loading={fetching} onClick={() => void go()}>
        Payment methods
      </Button>
      {error && <Failure error={error} />}
    </Stack>
  );
}
