/** Alerts page: alerts of the account, their silences and rules. */
import { Badge, Button, Group, SegmentedControl, Stack, Table, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { useMutation, useSubscription } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type AlertLineFragment,
  AlertsAcknowledgeDocument,
  AlertsListDocument,
  AlertsRaisedDocument,
  AlertsRulesDocument,
  AlertsSilenceDocument,
} from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { Card, Page } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Failure, Loading, QueryView } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { KINDS } from "./kinds.js";
import { Rules, useRules } from "./rules.js";

const OPEN = { filter: { isAcknowledged: false } };
/** An empty list names no type, so the cache needs this hint. */
const OF_ALERTS = { additionalTypenames: ["Alert"] };

export function start(): void {
  prefetch(AlertsListDocument, OPEN);
  prefetch(AlertsRulesDocument, {});
}

export function Component() {
  const rules = useRules();
  return (
    <Page title="Alerts" description="Raised by the rules below, and delivered to webhooks that listen to alert.raised.">
      <AlertList onSilenced={rules.refetch} />
      <Rules answer={rules} />
    </Page>
  );
}

function AlertList({ onSilenced }: { readonly onSilenced: () => void }) {
  const [isEvery, setEvery] = useState(false);
  const [after, setAfter] = useState<string | null>(null);
  const variables = { ...(isEvery ? {} : OPEN), ...(after !== null && { after }) };
  const answer = useAnswer({ query: AlertsListDocument, variables, context: OF_ALERTS });
  const { refetch } = answer;
  const [{ data: raised }] = useSubscription({ query: AlertsRaisedDocument });
  useEffect(() => {
    if (raised) refetch();
  }, [raised, refetch]);
  const show = (value: string) => {
    setAfter(null);
    setEvery(value === "all");
  };
  return (
    <Card
      title="Raised"
      actions={
        <SegmentedControl
          size="xs"
          aria-label="Alerts to list"
          value={isEvery ? "all" : "open"}
          onChange={show}
          data={[
            { value: "open", label: "Open" },
            { value: "all", label: "All" },
          ]}
        />
      }
    >
      <QueryView answer={answer} loading={<Loading rows={4} height={28} />}>
        {({ me }) => {
          const { nodes = [], pageInfo } = me?.alerts ?? {};
          if (nodes.length === 0)
            return <Empty title={isEvery ? "No alerts yet" : "No open alerts"}>New alerts appear here at once.</Empty>;
          return (
            <Stack gap="sm">
              <WideTable label="Alerts" columns={["Alert", "Raised", ""]}>
                {nodes.map((alert) => (
                  <Line key={alert.id} alert={alert} onSilenced={onSilenced} />
                ))}
              </WideTable>
              <Pager after={after} pageInfo={pageInfo} onMove={setAfter} next="Older alerts" />
            </Stack>
          );
        }}
      </QueryView>
    </Card>
  );
}

function Line({ alert, onSilenced }: { readonly alert: AlertLineFragment; readonly onSilenced: () => void }) {
  const { id, kind, message, subjectId, isSilenced, createdAt, acknowledgedAt } = alert;
  const [{ fetching, error }, acknowledge] = useMutation(AlertsAcknowledgeDocument);
  const [{ fetching: isSilencing, error: silenceError }, silence] = useMutation(AlertsSilenceDocument);
  const { label } = KINDS[kind];
  const failure = error ?? silenceError;
  const silenceSubject = async () => {
    const answer = await silence({ input: { kind, subjectId } });
    if (answer.error) return;
    toast({ message: "Silenced. Such alerts are listed and not delivered." });
    onSilenced();
  };
  return (
    <Table.Tr>
      <Table.Td miw={220}>
        <Group gap={6}>
          <Text fw={600} size="sm">
            {label}
          </Text>
          {isSilenced && (
            <Badge size="xs" color="gray" variant="light">
              Silenced
            </Badge>
          )}
          {acknowledgedAt !== null && (
            <Badge size="xs" color="green" variant="light">
              Acknowledged
            </Badge>
          )}
        </Group>
        <Text size="sm" className="any-wrap">
          {message}
        </Text>
        {failure && <Failure error={failure} />}
      </Table.Td>
      <WhenCell value={createdAt} />
      <Table.Td>
        <Group gap="xs" justify="flex-end" wrap="nowrap">
          {acknowledgedAt === null && (
            <Button size="compact-sm" variant="default" loading={fetching} onClick={() => acknowledge({ input: { id } })}>
              Acknowledge
            </Button>
          )}
          <Button size="compact-sm" variant="default" loading={isSilencing} onClick={silenceSubject} aria-label={`Silence ${label}`}>
            Silence
          </Button>
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}
