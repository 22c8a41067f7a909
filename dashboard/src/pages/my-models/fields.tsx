/** Form fields of a model or agent. The wizard shows the parts one by one, the edit form all together. */
import { Checkbox, Group, MultiSelect, Radio, Select, Stack, Textarea, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useQuery } from "urql";
import { MyModelsBasesDocument, MyModelsServersDocument } from "../../client/generated/graphql.js";
import { toModality } from "../../ui/modalities.js";
import type { ServerForm } from "../../ui/server-form.js";
import { type Draft, PRICE_FIELDS } from "./draft.js";
import { CONTENTS, PROXIED_OPTIONS, SAFETY, SERVERS } from "./labels.js";

/** Fields of each part, by their names in the GraphQL inputs. */
export const SOURCE_FIELDS = [
  "modality",
  "api",
  "url",
  "baseUrl",
  "bearerToken",
  "upstreamModel",
  "inputModalities",
  "outputModalities",
  "systemPrompt",
  "baseModelId",
  "mcpServers",
  "repository",
];
export const NAME_FIELDS = ["name", "title", "description", "requiredSafetyFeatures"];
export const TERMS_FIELDS = ["visibility", "advertised", "perUserRpm", "isPaidOnly", "imagePricing", "fallbackIds", ...PRICE_FIELDS];
export const ALL_FIELDS = [...SOURCE_FIELDS, ...NAME_FIELDS, ...TERMS_FIELDS];

export interface PartProps {
  readonly draft: Draft;
  readonly set: (changes: Partial<Draft>) => void;
  readonly form: ServerForm;
  /** Id of an existing model, some fields of which cannot be changed. */
  readonly id?: string;
}

export function SourcePart(props: PartProps) {
  const { draft } = props;
  if (draft.kind === "prompt") return <PromptPart {...props} />;
  if (draft.kind === "code") return <CodePart {...props} />;
  return <UpstreamPart {...props} />;
}

function UpstreamPart({ draft, set, form, id }: PartProps) {
  const isText = draft.kind === "endpoint" || draft.modality === "TEXT";
  return (
    <Stack>
      {draft.kind === "proxy" && id === undefined && (
        <Select
          label="Type"
          data={PROXIED_OPTIONS}
          value={draft.modality}
          onChange={(modality) => set({ modality: toModality(modality) ?? "TEXT" })}
          allowDeselect={false}
          error={form.errorOf("modality")}
        />
      )}
      {isText && (
        <Radio.Group
          label="API format"
          value={draft.api}
          onChange={(api) => set({ api: api === "RESPONSES" ? "RESPONSES" : "CHAT_COMPLETIONS" })}
          error={form.errorOf("api")}
        >
          <Group mt={4}>
            <Radio value="CHAT_COMPLETIONS" label="Chat Completions" />
            <Radio value="RESPONSES" label="Responses" />
          </Group>
        </Radio.Group>
      )}
      <TextInput
        label={isText ? "URL" : "Base URL"}
        description={
          isText
            ? "The exact endpoint, with path and query."
            : "The base URL of the media API, or the endpoint. For video, the exact endpoint."
        }
        placeholder={isText ? "https://models.example/v1/chat/completions" : "https://models.example/v1"}
        value={draft.url}
        onChange={({ target }) => {
          set({ url: target.value });
          form.clear("url");
          form.clear("baseUrl");
        }}
        error={form.errorOf(isText ? "url" : "baseUrl") ?? form.errorOf("url")}
        type="url"
        autoComplete="off"
        required
      />
      {draft.kind === "proxy" && (
        <TextInput
          label="Credential"
          description={
            id === undefined
              ? "The bearer token of the upstream. It is stored encrypted and never shown."
              : "Leave empty to keep the stored credential. A new URL requires it again."
          }
          {...form.text("bearerToken", draft.bearerToken, (bearerToken) => set({ bearerToken }))}
          type="password"
          autoComplete="new-password"
          required={id === undefined}
        />
      )}
      <TextInput
        label="Upstream model name"
        description="Leave empty if it is the same as the name here."
        {...form.text("upstreamModel", draft.upstreamModel, (upstreamModel) => set({ upstreamModel }))}
        autoComplete="off"
      />
      {isText && (
        <MultiSelect
          label="Input types"
          data={[...CONTENTS]}
          value={[...draft.inputModalities]}
          onChange={(chosen) => set({ inputModalities: CONTENTS.map(({ value }) => value).filter((value) => chosen.includes(value)) })}
          error={form.errorOf("inputModalities")}
        />
      )}
      {draft.kind === "endpoint" && (
        <MultiSelect
          label="Output types"
          data={[...CONTENTS]}
          value={[...draft.outputModalities]}
          onChange={(chosen) => set({ outputModalities: CONTENTS.map(({ value }) => value).filter((value) => chosen.includes(value)) })}
          error={form.errorOf("outputModalities")}
        />
      )}
    </Stack>
  );
}

function PromptPart({ draft, set, form }: PartProps) {
  const [search, setSearch] = useState("");
  const [debounced] = useDebouncedValue(search, 200);
  const [{ data }] = useQuery({
    query: MyModelsBasesDocument,
    variables: debounced === "" || debounced === draft.baseModelId ? {} : { search: debounced },
  });
  const [{ data: servers }] = useQuery({ query: MyModelsServersDocument });
  const available = servers?.mcpServers ?? undefined;
  const found = data?.models?.nodes.map(({ restId }) => restId) ?? [];
  const bases = draft.baseModelId === "" || found.includes(draft.baseModelId) ? found : [draft.baseModelId, ...found];
  return (
    <Stack>
      <Select
        label="Base model"
        description="A text model. Callers of the agent pay for its requests to this model."
        placeholder="Search models"
        data={bases}
        filter={({ options }) => options}
        searchable
        searchValue={search}
        onSearchChange={setSearch}
        nothingFoundMessage="No models found"
        {...form.input("baseModelId", draft.baseModelId || null, (chosen: string | null) => set({ baseModelId: chosen ?? "" }))}
        required
      />
      <Textarea
        label="System prompt"
        description="Instructions for the agent: its role, its tasks and its limits."
        {...form.text("systemPrompt", draft.systemPrompt, (systemPrompt) => set({ systemPrompt }))}
        rows={8}
        required
      />
      <Checkbox.Group
        label="Tools"
        value={[...draft.mcpServers]}
        onChange={(chosen) => set({ mcpServers: SERVERS.map(({ value }) => value).filter((value) => chosen.includes(value)) })}
        error={form.errorOf("mcpServers")}
      >
        <Stack gap={6} mt={4}>
          {SERVERS.map(({ value, label }) => {
            const isMissing = available !== undefined && !available.includes(value);
            return (
              <Checkbox
                key={value}
                value={value}
                label={label}
                description={isMissing ? "Not available: the operator has not configured this server." : undefined}
                // A chosen one can be removed.
                disabled={isMissing && !draft.mcpServers.includes(value)}
              />
            );
          })}
        </Stack>
      </Checkbox.Group>
    </Stack>
  );
}

function CodePart({ draft, set, form, id }: PartProps) {
  return (
    <Stack>
      <TextInput
        label="Repository"
        description="The https URL of a public git repository with an agent.ts at its root. Name and title come from the repository. Its latest commit is deployed."
        placeholder="https://github.com/you/your-agent"
        {...form.text("repository", draft.repository, (repository) => set({ repository }))}
        type="url"
        autoComplete="off"
        disabled={id !== undefined}
        required
      />
    </Stack>
  );
}

export function NamePart({ draft, set, form }: PartProps) {
  return (
    <Stack>
      {draft.kind !== "code" && (
        <>
          <TextInput
            label="Name"
            description="The last part of the model ID, such as my-model."
            {...form.text("name", draft.name, (name) => set({ name }))}
            autoComplete="off"
            required
          />
          <TextInput
            label="Title"
            description="The display name."
            {...form.text("title", draft.title, (title) => set({ title }))}
            autoComplete="off"
            required
          />
          <Textarea
            label="Description"
            description="What the model is good for."
            {...form.text("description", draft.description, (description) => set({ description }))}
            autosize
            minRows={2}
          />
        </>
      )}
      <Checkbox.Group
        label="Safety checks"
        description="Applied to the input of every request, regardless of the caller’s settings."
        value={[...draft.requiredSafetyFeatures]}
        onChange={(chosen) => set({ requiredSafetyFeatures: SAFETY.map(({ value }) => value).filter((value) => chosen.includes(value)) })}
        error={form.errorOf("requiredSafetyFeatures")}
      >
        <Stack gap={6} mt={4}>
          {SAFETY.map(({ value, label }) => (
            <Checkbox key={value} value={value} label={label} />
          ))}
        </Stack>
      </Checkbox.Group>
    </Stack>
  );
}
