/** External apps that the account's agents can use. Users approve a connection on the page of the integration broker. */
import { Badge, Button, Group, Modal, Stack, Table, Text, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  AppsConnectDocument,
  AppsDisconnectDocument,
  AppsIntegrationsDocument,
  type AppsIntegrationsQuery,
  AppsToolkitsDocument,
  type IntegrationStatus,
} from "../../client/generated/graphql.js";
import { Confirm } from "../../ui/confirm.js";
import { Card } from "../../ui/page.js";
import { Empty, Failure, Loading, QueryView } from "../../ui/states.js";
import { WideTable } from "../../ui/wide.js";

type Integration = NonNullable<NonNullable<AppsIntegrationsQuery["me"]>["integrations"]>[number];

const STATUSES: Readonly<Record<IntegrationStatus, { readonly color: string; readonly label: string }>> = {
  ACTIVE: { color: "green", label: "Connected" },
  INITIATED: { color: "orange", label: "Waiting for approval" },
  FAILED: { color: "red", label: "Failed" },
  EXPIRED: { color: "gray", label: "Expired" },
  INACTIVE: { color: "gray", label: "Disabled" },
};

export function Integrations() {
  const answer = useAnswer({ query: AppsIntegrationsDocument });
  const [isConnecting, setConnecting] = useState(false);
  // Approval happens in another window, so the state is refetched when the user returns.
  useEffect(() => {
    window.addEventListener("focus", answer.refetch);
    return () => window.removeEventListener("focus", answer.refetch);
  }, [answer.refetch]);
  const connect = <Button onClick={() => setConnecting(true)}>Connect app</Button>;
  return (
    <Card
      title="Integrations"
      actions={
        (answer.data?.me?.integrations?.length ?? 0) > 0 && (
          <Button size="compact-sm" variant="default" onClick={() => setConnecting(true)}>
            Connect app
          </Button>
        )
      }
    >
      <Modal opened={isConnecting} onClose={() => setConnecting(false)} title="Connect app" size="lg">
        <Toolkits onConnected={answer.refetch} onClose={() => setConnecting(false)} />
      </Modal>
      <QueryView answer={answer} loading={<Loading rows={2} height={36} />}>
        {({ me }) =>
          me?.integrations &&
          (me.integrations.length === 0 ? (
            <Empty title="No integrations yet" action={connect}>
              Connect external apps, such as mail or a calendar, for your agents to use.
            </Empty>
          ) : (
            <IntegrationTable integrations={me.integrations} />
          ))
        }
      </QueryView>
    </Card>
  );
}

function IntegrationTable({ integrations }: { readonly integrations: readonly Integration[] }) {
  const [, disconnect] = useMutation(AppsDisconnectDocument);
  return (
    <WideTable label="Integrations" columns={["App", "Status", ""]}>
      {integrations.map(({ id, toolkit, name, alias, description, status }) => {
        const title = name ?? toolkit;
        return (
          <Table.Tr key={id}>
            <Table.Td miw={160}>
              <Text fw={600} size="sm" className="any-wrap">
                <bdi>{title}</bdi>
                {alias !== null && (
                  <span className="soft">
                    {" "}
                    (<bdi>{alias}</bdi>)
                  </span>
                )}
              </Text>
              <Text size="xs" c="dimmed" className="any-wrap">
                {description}
              </Text>
            </Table.Td>
            <Table.Td style={{ whiteSpace: "nowrap" }}>
              <Badge variant="light" color={STATUSES[status].color} size="sm">
                {STATUSES[status].label}
              </Badge>
            </Table.Td>
            <Table.Td ta="right">
              <Confirm
                title={`Disconnect ${title}?`}
                action="Disconnect"
                onConfirm={async () => (await disconnect({ input: { id } })).error}
                trigger={(open) => (
                  <Button size="compact-xs" color="red" variant="light" onClick={open} aria-label={`Disconnect ${title}`}>
                    Disconnect
                  </Button>
                )}
              >
                <Text>Your agents can no longer use it. You can connect it again.</Text>
              </Confirm>
            </Table.Td>
          </Table.Tr>
        );
      })}
    </WideTable>
  );
}

function Toolkits({ onConnected, onClose }: { readonly onConnected: () => void; readonly onClose: () => void }) {
  const answer = useAnswer({ query: AppsToolkitsDocument });
  const [{ fetching, error }, connect] = useMutation(AppsConnectDocument);
  const [search, setSearch] = useState("");
  const [page, setPage] = useState<{ readonly name: string; readonly url: string }>();
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const begin = async (slug: string, name: string) => {
    const { data } = await connect({ input: { toolkit: slug } });
    if (!data?.connectIntegration) return;
    setPage({ name, url: data.connectIntegration.url });
    onConnected();
  };
  if (page) {
    return (
      <Stack>
        <Text role="status">
          Approve the connection to finish. Open the page of <bdi>{page.name}</bdi>, sign in there and approve, then return here.
        </Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button component="a" href={page.url} target="_blank" rel="noopener" onClick={onClose}>
            Open page
          </Button>
        </Group>
      </Stack>
    );
  }
  return (
    <Stack>
      <TextInput label="Search" value={search} onChange={({ target }) => setSearch(target.value)} type="search" data-autofocus />
      {error && <Failure error={error} />}
      <QueryView answer={answer}>
        {({ integrationToolkits }) => {
          const found = (integrationToolkits ?? []).filter(({ slug, name, description }) => {
            const text = `${slug} ${name} ${description}`.toLowerCase();
            return words.every((word) => text.includes(word));
          });
          return found.length === 0 ? (
            <Empty title="No apps found" />
          ) : (
            <Stack gap="sm" mah={360} style={{ overflowY: "auto" }}>
              {found.slice(0, SHOWN_MAX).map(({ slug, name, description }) => (
                <Group key={slug} justify="space-between" wrap="nowrap" gap="sm">
                  <div style={{ minWidth: 0 }}>
                    <Text fw={600} size="sm" className="any-wrap">
                      <bdi>{name}</bdi>
                    </Text>
                    <Text size="xs" c="dimmed" className="any-wrap">
                      {description}
                    </Text>
                  </div>
                  <Button
                    size="compact-xs"
                    variant="default"
                    disabled={fetching}
                    onClick={() => void begin(slug, name)}
                    aria-label={`Connect ${name}`}
                  >
                    Connect
                  </Button>
                </Group>
              ))}
              {found.length > SHOWN_MAX && (
                <Text size="xs" c="dimmed">
                  {found.length - SHOWN_MAX} more. Search to narrow the list.
                </Text>
              )}
            </Stack>
          );
        }}
      </QueryView>
    </Stack>
  );
}
const SHOWN_MAX = 50;
