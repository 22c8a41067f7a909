/** Form that creates a key. The secret of the new key is shown once. */
import {
  Alert,
  Button,
  Checkbox,
  Group,
  type MultiSelectProps,
  NumberInput,
  Radio,
  Select,
  Stack,
  Switch,
  Tabs,
  Text,
  TextInput,
} from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useMutation, useQuery } from "urql";
import {
  type AccountPermission,
  type ApiKeyType,
  KeysCreateDocument,
  type KeysCreateMutation,
  KeysModelsDocument,
} from "../../client/generated/graphql.js";
import { GATEWAY_URL } from "../../client/place.js";
import { Copyable, Snippet } from "../../ui/copy.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { FormModal } from "../../ui/form-modal.js";
import { ModelsSelect } from "../../ui/models-select.js";
import { type ServerForm, useServerForm } from "../../ui/server-form.js";

export const SECONDS_PER_DAY = 86_400;
export const EXPIRIES = [
  { value: "", label: "Never" },
  { value: "1", label: "1 day" },
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
];
const PERMISSIONS: readonly { readonly value: AccountPermission; readonly label: string; readonly description: string }[] = [
  { value: "PROFILE", label: "Profile", description: "Read the account's name, e-mail address and tier." },
  { value: "BALANCE", label: "Balance", description: "Read the account's balance." },
  { value: "USAGE", label: "Usage", description: "Read the account's usage and jobs." },
  {
    value: "KEYS",
    label: "Keys",
    description: "Manage the account: keys, models, agents and webhooks. Such a key can create other keys.",
  },
];

type Created = NonNullable<KeysCreateMutation["createApiKey"]>;

function useModels(search = "") {
  const [{ data }] = useQuery({ query: KeysModelsDocument, variables: search === "" ? {} : { search } });
  return data?.models?.nodes ?? [];
}

/** The gateway searches the models, because the catalog may be longer than one page. */
function AllowedModels(props: Pick<MultiSelectProps, "value" | "onChange" | "error">) {
  const [search, setSearch] = useState("");
  const [debounced] = useDebouncedValue(search, 200);
  const found = useModels(debounced).map(({ restId }) => restId);
  const chosen = props.value ?? [];
  return (
    <ModelsSelect
      data={[...new Set([...chosen, ...found])]}
      label="Allowed models"
      placeholder={chosen.length === 0 ? "Search models" : ""}
      searchValue={search}
      onSearchChange={setSearch}
      {...props}
    />
  );
}

interface Allowed {
  readonly isEveryModel: boolean;
  readonly models: readonly string[];
}

/** A typed budget is never changed silently: `-5` is not 5. */
export function budgetProblem(budget: string | number): string | undefined {
  return String(budget).trim().startsWith("-") ? "Enter 0 or more" : undefined;
}

export function ModelsChoice({
  isEveryModel,
  models,
  set,
  form,
}: Allowed & { readonly set: (changes: Partial<Allowed>) => void; readonly form: ServerForm }) {
  return (
    <>
      <Radio.Group label="Models" value={isEveryModel ? "all" : "some"} onChange={(value) => set({ isEveryModel: value === "all" })}>
        <Group mt={4}>
          <Radio value="all" label="All models" />
          <Radio value="some" label="Selected models" />
        </Group>
      </Radio.Group>
      {!isEveryModel && <AllowedModels {...form.input("allowedModels", [...models], (chosen) => set({ models: chosen }))} />}
    </>
  );
}

export function NewKey({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  const [created, setCreated] = useState<Created | null>(null);
  const close = () => {
    onClose();
    setCreated(null);
  };
  return (
    <FormModal opened={isOpen} onClose={close} title={created ? "Key created" : "Create key"} size="lg" isSecretShown={created !== null}>
      {created ? <CreatedKey created={created} onClose={close} /> : <NewKeyForm onCreated={setCreated} onClose={close} />}
    </FormModal>
  );
}

function NewKeyForm({ onCreated, onClose }: { readonly onCreated: (created: Created) => void; readonly onClose: () => void }) {
  const [, create] = useMutation(KeysCreateDocument);
  const form = useServerForm(["name", "creditBudget", "expiresIn", "allowedModels", "accountPermissions", "type", "isManagement"]);
  const [name, setName] = useState("");
  const [type, setType] = useState<ApiKeyType>("SECRET");
  const [budget, setBudget] = useState<string | number>("");
  const [expiry, setExpiry] = useState("");
  const [allowed, setAllowed] = useState<Allowed>({ isEveryModel: true, models: [] });
  const [permissions, setPermissions] = useState<string[]>([]);
  const [isManager, setIsManager] = useState(false);
  const isManagement = isManager && type === "SECRET";
  const submit = async () => {
    const answer = await create({
      input: {
        name,
        type,
        ...(budget !== "" && { creditBudget: String(budget) }),
        ...(expiry !== "" && { expiresIn: Number(expiry) * SECONDS_PER_DAY }),
        ...(!allowed.isEveryModel && { allowedModels: allowed.models }),
        ...(isManagement && { isManagement }),
        accountPermissions: PERMISSIONS.map(({ value }) => value).filter((value) => permissions.includes(value)),
      },
    });
    if (form.accept(answer) && answer.data?.createApiKey) onCreated(answer.data.createApiKey);
  };
  return (
    <DialogForm form={form} action="Create key" onSubmit={submit} onCancel={onClose}>
      <TextInput
        label="Name"
        description="For example the program that will use the key."
        {...form.text("name", name, setName)}
        autoComplete="off"
        required
        data-autofocus
      />
      <Radio.Group label="Type" value={type} onChange={(value) => setType(value as ApiKeyType)} error={form.errorOf("type")}>
        <Stack gap={6} mt={4}>
          <Radio value="SECRET" label="Secret: for servers and programs on your own machines" />
          <Radio value="PUBLISHABLE" label="Publishable: for browsers and apps. Anyone who sees it can spend its budget." />
        </Stack>
      </Radio.Group>
      {type === "SECRET" && (
        <Switch
          label="Management key"
          description="For provisioning tools: it creates, changes and revokes keys within the limits below, and cannot generate."
          checked={isManager}
          onChange={({ currentTarget: { checked } }) => setIsManager(checked)}
          error={form.errorOf("isManagement")}
        />
      )}
      <Group grow align="flex-start">
        <NumberInput
          label="Budget in credits"
          description="Leave empty for no limit."
          {...form.input("creditBudget", budget, setBudget)}
          error={budgetProblem(budget) ?? form.errorOf("creditBudget")}
          decimalScale={9}
          hideControls
        />
        <Select
          label="Expires"
          description="The key stops working after this time."
          data={EXPIRIES}
          value={expiry}
          onChange={(value) => setExpiry(value ?? "")}
          allowDeselect={false}
          error={form.errorOf("expiresIn")}
        />
      </Group>
      <ModelsChoice {...allowed} set={(changes) => setAllowed((before) => ({ ...before, ...changes }))} form={form} />
      <Checkbox.Group label="Account permissions" value={permissions} onChange={setPermissions} error={form.errorOf("accountPermissions")}>
        <Stack gap={6} mt={4}>
          {PERMISSIONS.filter(({ value }) => !(isManagement && value === "KEYS")).map(({ value, label, description }) => (
            <Checkbox key={value} value={value} label={label} description={description} />
          ))}
        </Stack>
      </Checkbox.Group>
    </DialogForm>
  );
}

function CreatedKey({ created: { apiKey, key }, onClose }: { readonly created: Created; readonly onClose: () => void }) {
  const secret = key ?? "";
  const models = useModels();
  const model =
    models.find(({ restId, modality }) => modality === "TEXT" && (apiKey.allowedModels?.includes(restId) ?? true))?.restId ??
    apiKey.allowedModels?.[0] ??
    "MODEL";
  return (
    <Stack>
      <Alert color="yellow" variant="light" title="Copy this key now. You won’t be able to see it again." role="status">
        The gateway stores only a hash of the key.
      </Alert>
      <div className="card" data-key-value>
        <Copyable value={secret} label="key" />
      </div>
      <Text fw={600}>Try it</Text>
      <Tabs defaultValue="curl">
        <Tabs.List>
          <Tabs.Tab value="curl">curl</Tabs.Tab>
          {!apiKey.isManagement && <Tabs.Tab value="python">Python</Tabs.Tab>}
          {!apiKey.isManagement && <Tabs.Tab value="node">Node</Tabs.Tab>}
          <Tabs.Tab value="graphql">GraphQL</Tabs.Tab>
        </Tabs.List>
        {Object.entries(apiKey.isManagement ? managementSnippets(secret) : snippets(secret, model)).map(([name, code]) => (
          <Tabs.Panel key={name} value={name} pt="xs">
            <Snippet code={code} label={`Example for ${name}`} />
          </Tabs.Panel>
        ))}
      </Tabs>
      <Group justify="flex-end">
        <Button onClick={onClose}>Done</Button>
      </Group>
    </Stack>
  );
}

function managementSnippets(key: string) {
  return {
    curl: `curl ${GATEWAY_URL}/account/keys \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"name": "My app", "externalId": "my-app", "creditBudget": 5}'`,
    graphql: `curl ${GATEWAY_URL}/graphql \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"query": "mutation { createApiKey(input: {name: \\"My app\\", externalId: \\"my-app\\", creditBudget: \\"5\\"}) { key apiKey { restId } } }"}'`,
  };
}

function snippets(key: string, model: string) {
  return {
    curl: `curl ${GATEWAY_URL}/v1/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`,
    python: `from openai import OpenAI

client = OpenAI(base_url="${GATEWAY_URL}/v1", api_key="${key}")
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
    node: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${GATEWAY_URL}/v1", apiKey: "${key}" });
const answer = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0].message.content);`,
    graphql: `curl ${GATEWAY_URL}/graphql \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"query": "mutation { createChatCompletion(input: {model: \\"${model}\\", messages: [{role: USER, content: \\"Hello\\"}]}) { raw receipt { cost } } }"}'`,
  };
}
