import { Anchor, Badge, Button, Stack, Table, Text } from "@mantine/core";
import { Link, useParams, useSearchParams } from "react-router";
import { useAnswer } from "../../client/answer.js";
import { type MyModelRowFragment, MyModelsListDocument, MyModelsOneDocument, MyModelsWhoDocument } from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { Credits } from "../../ui/credits.js";
import { Card, Page } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { kindOf } from "./draft.js";
import { Earnings } from "./earnings.js";
import { Health } from "./health.js";
import { KIND_LABELS } from "./labels.js";
import { useModelChanges } from "./live.js";
import { OneModel } from "./one.js";
import { HowToPublish } from "./publishing.js";
import { NewModel } from "./wizard.js";

const NEW = "new";

export function start({ params: { id }, url }: { readonly params: Readonly<Record<string, string | undefined>>; readonly url: URL }): void {
  if (id === NEW) prefetch(MyModelsWhoDocument, {});
  else if (id !== undefined) prefetch(MyModelsOneDocument, { id });
  else prefetch(MyModelsListDocument, pageOf(url.searchParams));
}

const pageOf = (search: URLSearchParams) => (search.has("after") ? { after: search.get("after") } : {});

export function Component() {
  const { id } = useParams();
  if (id === NEW) return <NewModel />;
  return id === undefined ? <MyModels /> : <OneModel key={id} id={id} />;
}

function MyModels() {
  const [search, setSearch] = useSearchParams();
  const answer = useAnswer({ query: MyModelsListDocument, variables: pageOf(search) });
  useModelChanges(answer.refetch);
  const me = answer.data?.me;
  const create = (
    <Button component={Link} to={`${addressOf("my-models")}/${NEW}`}>
      Create model or agent
    </Button>
  );
  return (
    <Page
      title="My models and agents"
      description="Models and agents that you have created, with their health and what other users spend on them."
      actions={create}
    >
      {me && !me.isPublisher && <HowToPublish handle={me.handle} />}
      <Earnings />
      <Card>
        <QueryView answer={answer} loading={<Loading rows={5} height={36} />}>
          {({ me }) => {
            const { nodes = [], pageInfo } = me?.communityModels ?? {};
            return nodes.length === 0 ? (
              <Empty title="No models or agents yet" action={create}>
                The quickest start is a prompt agent: a model of the catalog with your own instructions.
              </Empty>
            ) : (
              <Stack gap="sm">
                <ModelTable models={nodes} />
                <Pager
                  after={search.get("after")}
                  pageInfo={pageInfo}
                  onMove={(after) => setSearch(after === null ? {} : { after })}
                  next="Next page"
                />
              </Stack>
            );
          }}
        </QueryView>
      </Card>
    </Page>
  );
}

function ModelTable({ models }: { readonly models: readonly MyModelRowFragment[] }) {
  return (
    <WideTable
      label="Your models and agents"
      columns={["Title", "Type", "Visibility", "Health", { amount: "Requests by others, 30 days" }, { amount: "Credits, 30 days" }]}
      highlightOnHover
    >
      {models.map((model) => (
        <Table.Tr key={model.id}>
          <Table.Td miw={180}>
            <Anchor component={Link} to={encodeURIComponent(model.id)} className="any-wrap" fw={600}>
              <bdi>{model.title}</bdi>
            </Anchor>
            <Text size="xs" c="dimmed" className="mono any-wrap">
              {model.modelId}
            </Text>
          </Table.Td>
          <Table.Td style={{ whiteSpace: "nowrap" }}>{KIND_LABELS[kindOf(model)].name}</Table.Td>
          <Table.Td>
            <div>{model.visibility === "PUBLIC" ? "Public" : "Private"}</div>
            {model.pending && (
              <Badge size="sm" color="orange" variant="light" tt="none" miw="max-content">
                changes <When value={model.pending.effectiveAt} />
              </Badge>
            )}
          </Table.Td>
          <Table.Td>
            <Health health={model.health} />
          </Table.Td>
          <Table.Td ta="right">{model.usage?.requests.toLocaleString("en") ?? "–"}</Table.Td>
          <Table.Td ta="right">
            <Credits value={model.usage?.cost} />
          </Table.Td>
        </Table.Tr>
      ))}
    </WideTable>
  );
}
