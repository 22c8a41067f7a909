import { Anchor, Badge, Button, Group, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import type { AppsKeysQuery } from "../../client/generated/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { Credits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { Empty } from "../../ui/states.js";
import { WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";

export function OwnApps({ keys }: { readonly keys: NonNullable<AppsKeysQuery["me"]>["own"] }) {
  if (keys === null) return null;
  return (
    <Card title="Your apps">
      {keys.nodes.length === 0 ? (
        <Empty
          title="No apps registered"
          action={
            <Button component={Link} to="?new">
              Register app
            </Button>
          }
        >
          A registered app can ask users for keys of their own. Users then pay for their requests.
        </Empty>
      ) : (
        <WideTable
          label="Your apps"
          columns={[
            "App",
            { wide: "Key" },
            { wide: "Redirect URLs" },
            { wide: "Requests, 30 days" },
            { amount: "Credits, 30 days" },
            { wide: "Created" },
          ]}
          highlightOnHover
          below={
            keys.totalCount > keys.nodes.length && (
              <Text size="sm" c="dimmed">
                Showing the newest {keys.nodes.length} of {keys.totalCount}.
              </Text>
            )
          }
        >
          {keys.nodes.map(({ id, name, start, isValid, redirectUrls, appUsage, createdAt }) => (
            <Table.Tr key={id}>
              <Table.Td>
                <Group gap={6}>
                  <Anchor component={Link} to={`${addressOf("apps")}/${encodeURIComponent(id)}`} fw={600} size="sm" className="any-wrap">
                    <bdi>{name}</bdi>
                  </Anchor>
                  {!isValid && (
                    <Badge size="xs" variant="light" color="red">
                      Inactive
                    </Badge>
                  )}
                </Group>
              </Table.Td>
              <Table.Td className="mono" visibleFrom="sm">
                {start}…
              </Table.Td>
              <Table.Td className="any-wrap" miw={160} visibleFrom="sm">
                {redirectUrls.length === 0 ? <span className="soft">Any safe URL</span> : <Addresses urls={redirectUrls} />}
              </Table.Td>
              <Table.Td visibleFrom="sm">{appUsage?.totalRequests ?? "–"}</Table.Td>
              <Table.Td ta="right">
                <Credits value={appUsage?.totalCost} />
              </Table.Td>
              <WhenCell value={createdAt} visibleFrom="sm" />
            </Table.Tr>
          ))}
        </WideTable>
      )}
    </Card>
  );
}

function Addresses({ urls: [first, ...others] }: { readonly urls: readonly string[] }) {
  return (
    <Text size="sm" className="any-wrap">
      {first}
      {others.length > 0 && <span className="soft"> and {others.length} more</span>}
    </Text>
  );
}
