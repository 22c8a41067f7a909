/** The fields of a model or an agent, in the parts that the wizard asks for one by one and the form that changes it shows together. */
import { Checkbox, Group, MultiSelect, Radio, Select, Stack, Textarea, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useQuery } from "urql";
import { MyModelsBasesDocument } from "../../client/generated/graphql.js";
import { toModality } from "../../ui/modalities.js";
import type { ServerForm } from "../../ui/server-form.js";
import { type Draft, PRICE_FIELDS } from "./draft.js";
import { CONTENTS, PROXIED_OPTIONS, SAFETY, SERVERS } from "./labels.js";

/** By the names that the graph's inputs have for them, for each part. */
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
  /** Of a model that there is: some of it stays as it is. */
  readonly id?: string;
}

/** Where it is, and how it is reached. */
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
          label="What it does"
          data={PROXIED_OPTIONS}
          value={draft.modality}
          onChange={(modality) => set({ modality: toModality(modality) ?? "TEXT" })}
          allowDeselect={false}
          error={form.errorOf("modality")}
        />
      )}
      {isText && (
        <Radio.Group
          label="The format that it speaks"
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
        label={isText ? "Address" : "Base address"}
        description={
          isText
            ? "The exact endpoint, with its path and query."
            : "The base of the media API, or the endpoint; of video the exact endpoint."
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
              ? "The bearer token that its service takes. It is stored encrypted and never shown."
              : "Empty: the one that is stored. Another address needs it again."
          }
          {...form.text("bearerToken", draft.bearerToken, (bearerToken) => set({ bearerToken }))}
          type="password"
          autoComplete="new-password"
          required={id === undefined}
        />
      )}
      <TextInput
        label="Its own name for the model"
        description="Empty: the name that you give it here."
        {...form.text("upstreamModel", draft.upstreamModel, (upstreamModel) => set({ upstreamModel }))}
        autoComplete="off"
      />
      {isText && (
        <MultiSelect
          label="What goes into it"
          data={[...CONTENTS]}
          value={[...draft.inputModalities]}
          onChange={(chosen) => set({ inputModalities: CONTENTS.map(({ value }) => value).filter((value) => chosen.includes(value)) })}
          error={form.errorOf("inputModalities")}
        />
      )}
      {draft.kind === "endpoint" && (
        <MultiSelect
          label="What comes out of it"
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
  const [asked] = useDebouncedValue(search, 200);
  const [{ data }] = useQuery({
    query: MyModelsBasesDocument,
    variables: asked === "" || asked === draft.baseModelId ? {} : { search: asked },
  });
  const found = data?.models?.nodes.map(({ restId }) => restId) ?? [];
  const bases = draft.baseModelId === "" || found.includes(draft.baseModelId) ? found : [draft.baseModelId, ...found];
  return (
    <Stack>
      <Select
        label="The model that it asks"
        description="A text model. Whoever calls the agent pays for what it asks."
        placeholder="Search by name"
        data={bases}
        filter={({ options }) => options}
        searchable
        searchValue={search}
        onSearchChange={setSearch}
        nothingFoundMessage="No text model is called that"
        {...form.input("baseModelId", draft.baseModelId || null, (chosen: string | null) => set({ baseModelId: chosen ?? "" }))}
        required
      />
      <Textarea
        label="What it is told first"
        description="The system prompt: who it is, what it does, what it never does."
        {...form.text("systemPrompt", draft.systemPrompt, (systemPrompt) => set({ systemPrompt }))}
        rows={8}
        required
      />
      <Checkbox.Group
        label="Tools that it may use"
        value={[...draft.mcpServers]}
        onChange={(chosen) => set({ mcpServers: SERVERS.map(({ value }) => value).filter((value) => chosen.includes(value)) })}
        error={form.errorOf("mcpServers")}
      >
        <Stack gap={6} mt={4}>
          {SERVERS.map(({ value, label }) => (
            <Checkbox key={value} value={value} label={label} />
          ))}
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
        description="The https address of a public git repository with an agent.ts at its root. Its name and title come from there, and its latest commit is what runs."
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

/** What it is called. */
export function NamePart({ draft, set, form }: PartProps) {
  return (
    <Stack>
      {draft.kind !== "code" && (
        <>
          <TextInput
            label="Name"
            description="The last part of the id that it is called by, such as my-model."
            {...form.text("name", draft.name, (name) => set({ name }))}
            autoComplete="off"
            required
          />
          <TextInput
            label="Title"
            description="What people call it."
            {...form.text("title", draft.title, (title) => set({ title }))}
            autoComplete="off"
            required
          />
          <Textarea
            label="Description"
            description="What it is good for."
            {...form.text("description", draft.description, (description) => set({ description }))}
            autosize
            minRows={2}
          />
        </>
      )}
      <Checkbox.Group
        label="Checks of what goes in"
        description="Every request has them, whatever its caller asks for."
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
