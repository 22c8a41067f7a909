import { TrashIcon } from "@heroicons/react/24/outline";
import { Badge, Button, Group, Progress, Select, SimpleGrid, Stack, TagsInput, Text } from "@mantine/core";
import { useMemo } from "react";
import { Link, useNavigate, useParams, useSearchParams } from "react-router";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type FileCardFragment,
  FilesDeleteDocument,
  FilesListDocument,
  type FilesListQueryVariables,
  FilesOneDocument,
  type FilesOneQuery,
  FilesQuotaDocument,
  type MediaKind,
  type MediaOrder,
} from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { formatBytes, formatCount } from "../../ui/amounts.js";
import { Confirm } from "../../ui/confirm.js";
import { Copyable } from "../../ui/copy.js";
import { DetailView } from "../../ui/detail-view.js";
import { Fact, Facts } from "../../ui/facts.js";
import { Card, Page } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { Preview, Thumbnail } from "./preview.js";
import { UploadPanel } from "./upload-panel.js";
import { OUTDATED } from "./uploads.js";
import "./files.css";

const KINDS: ReadonlyMap<string, { readonly kind: MediaKind; readonly label: string }> = new Map([
  ["image", { kind: "IMAGE", label: "Images" }],
  ["video", { kind: "VIDEO", label: "Videos" }],
  ["audio", { kind: "AUDIO", label: "Audio" }],
  ["text", { kind: "TEXT", label: "Text" }],
  ["other", { kind: "OTHER", label: "Other" }],
]);

const ORDERS: ReadonlyMap<string, { readonly order: MediaOrder; readonly label: string }> = new Map([
  ["newest", { order: { field: "CREATED_AT", direction: "DESC" }, label: "Newest first" }],
  ["oldest", { order: { field: "CREATED_AT", direction: "ASC" }, label: "Oldest first" }],
  ["largest", { order: { field: "SIZE", direction: "DESC" }, label: "Largest first" }],
  ["smallest", { order: { field: "SIZE", direction: "ASC" }, label: "Smallest first" }],
  ["name", { order: { field: "NAME", direction: "ASC" }, label: "Name" }],
]);
const NEWEST: MediaOrder = { field: "CREATED_AT", direction: "DESC" };

function readVariables(search: URLSearchParams): FilesListQueryVariables {
  const kind = KINDS.get(search.get("kind") ?? "")?.kind;
  const tags = search.getAll("tag");
  const after = search.get("after");
  return {
    orderBy: ORDERS.get(search.get("sort") ?? "")?.order ?? NEWEST,
    ...((kind !== undefined || tags.length > 0) && { filter: { ...(kind && { kinds: [kind] }), ...(tags.length > 0 && { tags }) } }),
    ...(after !== null && { after }),
  };
}

export function start({ params: { id }, url }: { readonly params: Readonly<Record<string, string | undefined>>; readonly url: URL }): void {
  if (id !== undefined) {
    prefetch(FilesOneDocument, { id });
    return;
  }
  prefetch(FilesListDocument, readVariables(url.searchParams));
  prefetch(FilesQuotaDocument, {});
}

export function Component() {
  const { id } = useParams();
  return id === undefined ? <Files /> : <OneFile id={id} />;
}

function Files() {
  const [search, setSearch] = useSearchParams();
  const variables = useMemo(() => readVariables(search), [search]);
  const answer = useAnswer({ query: FilesListDocument, variables });
  const filterBy = (name: string, values: readonly string[]) => {
    const changed = new URLSearchParams(search);
    changed.delete("after");
    changed.delete(name);
    for (const value of values) changed.append(name, value);
    setSearch(changed);
  };
  const isFiltered = variables.filter !== undefined;
  return (
    <Page
      title="Files"
      description="Store images, audio, video and other files to use as model input or to share by link. Anyone with the link can read a file."
    >
      <Card title="Upload">
        <UploadPanel>
          <Quota />
        </UploadPanel>
      </Card>
      <Card title="Your files">
        <Stack>
          <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
            <Select
              label="Type"
              data={[{ value: "", label: "All types" }, ...[...KINDS].map(([value, { label }]) => ({ value, label }))]}
              value={search.get("kind") ?? ""}
              onChange={(kind) => filterBy("kind", kind ? [kind] : [])}
              allowDeselect={false}
            />
            <TagsInput
              label="Tags"
              placeholder={search.has("tag") ? "" : "Type a tag, press Enter"}
              value={search.getAll("tag")}
              onChange={(tags) => filterBy("tag", tags)}
              maxTags={8}
            />
            <Select
              label="Sort by"
              data={[...ORDERS].map(([value, { label }]) => ({ value, label }))}
              value={ORDERS.has(search.get("sort") ?? "") ? search.get("sort") : "newest"}
              onChange={(sort) => filterBy("sort", sort && sort !== "newest" ? [sort] : [])}
              allowDeselect={false}
            />
          </SimpleGrid>
          <QueryView answer={answer} loading={<Loading rows={2} height={180} />}>
            {({ me }) => {
              const { nodes = [], pageInfo, totalCount = 0 } = me?.media ?? {};
              if (nodes.length === 0) {
                return isFiltered ? (
                  <Empty
                    title="No files match your filters"
                    action={
                      <Button variant="default" onClick={() => setSearch({})}>
                        Clear filters
                      </Button>
                    }
                  >
                    Select another type, or remove a tag.
                  </Empty>
                ) : (
                  <Empty title="No files yet">Upload files above. Files with a tag are listed here.</Empty>
                );
              }
              return (
                <>
                  <Text size="sm" c="dimmed" role="status">
                    {formatCount(totalCount, "file", "files")}
                  </Text>
                  <ul className="file-grid">
                    {nodes.map((file) => (
                      <li key={file.id}>
                        <Tile file={file} />
                      </li>
                    ))}
                  </ul>
                  <Pager
                    after={search.get("after")}
                    pageInfo={pageInfo}
                    onMove={(after) => filterBy("after", after === null ? [] : [after])}
                    first="First page"
                    next="Next page"
                  />
                </>
              );
            }}
          </QueryView>
        </Stack>
      </Card>
    </Page>
  );
}

function Tile({ file }: { readonly file: FileCardFragment }) {
  return (
    <Link to={`${addressOf("files")}/${encodeURIComponent(file.id)}`} className="file-tile">
      <Thumbnail file={file} />
      <span className="file-words">
        <Text size="sm" fw={600} truncate title={file.name ?? file.restId}>
          <bdi>{file.name ?? file.restId}</bdi>
        </Text>
        <Text size="xs" c="dimmed">
          {formatBytes(file.size)}, <When value={file.createdAt} />
        </Text>
      </span>
    </Link>
  );
}

function Quota() {
  const answer = useAnswer({ query: FilesQuotaDocument });
  return (
    <QueryView answer={answer} loading={<Loading rows={2} height={34} />}>
      {({ me }) => {
        const quota = me?.mediaQuota;
        if (!quota) return null;
        return (
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
            <Meter label="Storage" used={quota.usedBytes} limit={quota.limitBytes} format={formatBytes} />
            <Meter label="Files" used={quota.files} limit={quota.limitFiles} format={(count) => count.toLocaleString("en")} />
          </SimpleGrid>
        );
      }}
    </QueryView>
  );
}

function Meter({
  label,
  used,
  limit,
  format,
}: {
  readonly label: string;
  readonly used: number;
  readonly limit: number;
  readonly format: (value: number) => string;
}) {
  const percent = limit === 0 ? 100 : Math.min(100, (used / limit) * 100);
  return (
    <div>
      <Group justify="space-between">
        <Text size="sm">{label}</Text>
        <Text size="sm">
          {format(used)} of {format(limit)}
        </Text>
      </Group>
      <Progress
        value={percent}
        color={percent > 90 ? "orange" : "blue"}
        size="md"
        mt={4}
        aria-label={`${label}: ${format(used)} of ${format(limit)}`}
      />
    </div>
  );
}

type Shown = Extract<NonNullable<FilesOneQuery["node"]>, { readonly __typename: "MediaObject" | "MediaFile" }>;

const ABOVE = [{ label: "Files", to: addressOf("files") }];

function OneFile({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: FilesOneDocument, variables: { id } });
  return (
    <DetailView answer={answer} name="file" above={ABOVE} why="It was deleted, or it has expired." all="All files">
      {({ node }) => (node?.__typename === "MediaObject" || node?.__typename === "MediaFile") && <FileDetails file={node} />}
    </DetailView>
  );
}

function FileDetails({ file }: { readonly file: Shown }) {
  const name = file.name ?? file.restId;
  const tags = file.__typename === "MediaObject" ? file.tags : [];
  return (
    <Page
      title={<bdi>{name}</bdi>}
      tabTitle={name}
      above={ABOVE}
      actions={
        <>
          <Button component="a" variant="default" href={file.url} target="_blank" rel="noreferrer">
            Open
          </Button>
          {tags.length > 0 && <DeleteFile id={file.id} name={name} />}
        </>
      }
    >
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <Card>
          <Preview file={file} />
        </Card>
        <Card title="Details">
          <Facts>
            <Fact label="Link">
              <Copyable value={file.url} label="link" />
            </Fact>
            <Fact label="ID">
              <Copyable value={file.restId} label="ID" />
            </Fact>
            <Fact label="Type">{file.contentType}</Fact>
            <Fact label="Size">
              <span title={`${file.size} bytes`}>{formatBytes(file.size)}</span>
            </Fact>
            <Fact label="Uploaded">
              <When value={file.createdAt} />
            </Fact>
            <Fact label="Expires">
              <When value={file.expiresAt} />
            </Fact>
            {file.__typename === "MediaFile" && (
              <Fact label="SHA-256">
                <Copyable value={file.sha256} label="SHA-256" />
              </Fact>
            )}
            {tags.length > 0 && (
              <Fact label="Tags">
                <Group gap={6}>
                  {tags.map((tag) => (
                    <Badge
                      key={tag}
                      component={Link}
                      to={`${addressOf("files")}?tag=${encodeURIComponent(tag)}`}
                      variant="light"
                      tt="none"
                      size="lg"
                      style={{ cursor: "pointer" }}
                    >
                      {tag}
                    </Badge>
                  ))}
                </Group>
              </Fact>
            )}
          </Facts>
        </Card>
      </SimpleGrid>
    </Page>
  );
}

function DeleteFile({ id, name }: { readonly id: string; readonly name: string }) {
  const [, remove] = useMutation(FilesDeleteDocument);
  const navigate = useNavigate();
  return (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete file"
      onConfirm={async () => {
        const { error } = await remove({ input: { id } }, OUTDATED);
        if (!error) void navigate(addressOf("files"), { replace: true });
        return error;
      }}
      trigger={(open) => (
        <Button color="red" variant="light" onClick={open} leftSection={<TrashIcon width={16} aria-hidden />}>
          Delete
        </Button>
      )}
    >
      <Text>
        Its link stops working: pages that show it, messages that link to it and requests that send it to a model will fail. The file is
        removed from the public gallery, and its storage is freed. This cannot be undone.
      </Text>
    </Confirm>
  );
}
