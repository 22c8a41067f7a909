/** Routes of the gateway's models: their state, and changes of weight, priority and whether they are called. */
import { Alert, Badge, Button, Checkbox, Group, NumberInput, Stack, Switch, Table, Text, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type OperatorModelRoutesFragment,
  OperatorResetRoutesDocument,
  OperatorRoutesDocument,
  type OperatorRoutesQueryVariables,
  OperatorUpdateRouteDocument,
} from "../../client/generated/graphql.js";
import { Confirm } from "../../ui/confirm.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { FormModal } from "../../ui/form-modal.js";
import { Card } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { ModelLimits } from "./limits.js";
import { OPERATOR, OperatorPage } from "./parts.js";

type ModelRoutes = OperatorModelRoutesFragment;
type Route = ModelRoutes["routes"][number];

const NUMBER_MAX = 1_000_000;

const ORDERS: Readonly<Record<NonNullable<ModelRoutes["routing"]>, string>> = {
  WEIGHT: "by weight",
  PRICE: "lowest price first",
  LATENCY: "fastest first token first",
  THROUGHPUT: "highest throughput first",
};

const COOLING: Readonly<Record<NonNullable<Route["coolingDownCode"]>, string>> = {
  CREDENTIAL_REFUSED: "Key refused",
  PAYMENT_REQUIRED: "No funds",
  RATE_LIMITED: "Rate limited",
  CIRCUIT_OPEN: "Failing",
  LIMIT_REACHED: "Limit reached",
};

const REASONS: Readonly<Record<ModelRoutes["ignored"][number]["reason"], string>> = {
  NO_MODEL: "the model is not configured",
  NO_ROUTE: "the model has no such route",
  NO_UPSTREAM: "the upstream is not configured",
  NO_KEY: "the upstream has no such key",
};

/** Reads the filters from the address. */
export function toRoutesVariables(parameters: URLSearchParams): OperatorRoutesQueryVariables {
  const [modelId, after] = ["model", "after"].map((name) => parameters.get(name));
  const filter = { ...(modelId && { modelId }), ...(parameters.has("changed") && { isChanged: true }) };
  return { ...(after && { after }), ...(Object.keys(filter).length > 0 && { filter }) };
}

export function RoutesPage() {
  const [parameters, setParameters] = useSearchParams();
  const variables = toRoutesVariables(parameters);
  const answer = useAnswer({ query: OperatorRoutesDocument, variables });
  const [warnings, setWarnings] = useState<readonly string[]>([]);
  const set = (changes: Readonly<Record<string, string | null>>) =>
    setParameters((before) => {
      const after = new URLSearchParams(before);
      for (const [name, value] of Object.entries(changes)) {
        if (value === null) after.delete(name);
        else after.set(name, value);
      }
      return after;
    });
  const onChange = (found: readonly string[]) => {
    setWarnings(found);
    answer.refetch();
  };
  return (
    <OperatorPage
      title="Routes"
      description="The upstreams and keys that serve each model. Changes take effect for the next request."
      above={[{ label: "Operator", to: OPERATOR }]}
    >
      <Card>
        <Stack gap="sm">
          <Search
            model={parameters.get("model") ?? ""}
            isChanged={parameters.has("changed")}
            onSearch={(model) => set({ model: model === "" ? null : model, after: null })}
            onChanged={(isChanged) => set({ changed: isChanged ? "" : null, after: null })}
          />
          {warnings.length > 0 && (
            <Alert color="yellow" title="Saved with a warning" role="status">
              {warnings.map((warning) => (
                <Text key={warning} size="sm" className="any-wrap">
                  {warning}
                </Text>
              ))}
            </Alert>
          )}
          <QueryView answer={answer} loading={<Loading rows={8} height={34} />}>
            {({ modelRoutes }) =>
              modelRoutes &&
              (modelRoutes.nodes.length === 0 ? (
                <Empty title={parameters.has("changed") ? "No changed routes" : "No models"} />
              ) : (
                <>
                  <RoutesTable models={modelRoutes.nodes} onChange={onChange} />
                  <Pager
                    after={variables.after ?? null}
                    pageInfo={modelRoutes.pageInfo}
                    onMove={(after) => set({ after })}
                    first="First"
                    next="Next models"
                  />
                </>
              ))
            }
          </QueryView>
        </Stack>
      </Card>
      <ModelLimits />
    </OperatorPage>
  );
}

interface SearchProps {
  readonly model: string;
  readonly isChanged: boolean;
  readonly onSearch: (model: string) => void;
  readonly onChanged: (isChanged: boolean) => void;
}

function Search({ model, isChanged, onSearch, onChanged }: SearchProps) {
  const [typed, setTyped] = useState<string>();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSearch((typed ?? model).trim());
    setTyped(undefined);
  };
  return (
    <search>
      <form onSubmit={submit}>
        <Group align="flex-end" gap="xs">
          <TextInput
            label="Model"
            placeholder="ID or alias, such as openai/gpt-4o"
            type="search"
            maxLength={253}
            value={typed ?? model}
            onChange={({ target }) => setTyped(target.value)}
            style={{ flex: 1, minWidth: 200 }}
          />
          <Button type="submit" variant="default">
            Search
          </Button>
          <Checkbox label="Changed only" checked={isChanged} onChange={({ target }) => onChanged(target.checked)} mb={8} />
        </Group>
      </form>
    </search>
  );
}

interface RoutesTableProps {
  readonly models: readonly ModelRoutes[];
  readonly onChange: (warnings: readonly string[]) => void;
}

function RoutesTable({ models, onChange }: RoutesTableProps) {
  return (
    <WideTable
      label="Routes"
      columns={["Route", "State", { amount: "Priority" }, { amount: "Weight" }, { wide: "First token" }, { wide: "At once" }, ""]}
    >
      {models.map((model) => (
        <ModelRows key={model.modelId} model={model} onChange={onChange} />
      ))}
    </WideTable>
  );
}

function ModelRows({ model, onChange }: { readonly model: ModelRoutes; readonly onChange: RoutesTableProps["onChange"] }) {
  const { modelId, isOffered, routing, routes, ignored } = model;
  const isChanged = routes.some(({ isAdded, changed }) => isAdded || changed.length > 0) || ignored.length > 0;
  return (
    <>
      <Table.Tr bg="var(--mantine-color-default-hover)">
        <Table.Th scope="rowgroup" colSpan={6}>
          <bdi className="any-wrap">{modelId}</bdi>{" "}
          {routes.length > 1 && routing !== null && (
            <Text span size="xs" c="dimmed" fw={400}>
              {ORDERS[routing]}
            </Text>
          )}{" "}
          {!isOffered && (
            <Badge size="sm" variant="light" color="red">
              Not offered
            </Badge>
          )}
        </Table.Th>
        <Table.Td ta="right">{isChanged && <Reset modelId={modelId} onChange={onChange} />}</Table.Td>
      </Table.Tr>
      {routes.map((route) => (
        <Table.Tr key={route.id}>
          <Table.Td>
            <bdi className="any-wrap">{route.upstream}</bdi>
            {route.keyCount > 1 && ` (key ${route.keyNumber})`}{" "}
            {(route.isAdded || route.changed.length > 0) && (
              <Badge size="xs" variant="light">
                {route.isAdded ? "Added" : "Changed"}
              </Badge>
            )}
            <Text size="xs" c="dimmed" className="any-wrap">
              <bdi>{route.upstreamModel}</bdi>
            </Text>
          </Table.Td>
          <Table.Td>
            <State route={route} />
          </Table.Td>
          <Table.Td ta="right">{route.priority}</Table.Td>
          <Table.Td ta="right">{formatWeight(route.weight)}</Table.Td>
          <Table.Td visibleFrom="sm">{route.firstTokenMs === null ? "–" : `${Math.round(route.firstTokenMs)} ms`}</Table.Td>
          <Table.Td visibleFrom="sm">{route.requestsAtOnce ?? "–"}</Table.Td>
          <Table.Td ta="right">
            <Edit modelId={modelId} route={route} onChange={onChange} />
          </Table.Td>
        </Table.Tr>
      ))}
      {ignored.map(({ upstream, upstreamModel, reason }, index) => (
        // Several changes may name one route.
        <Table.Tr key={index}>
          <Table.Td colSpan={7}>
            <Text size="sm" c="dimmed" className="any-wrap">
              A change of <bdi>{upstream}</bdi> (<bdi>{upstreamModel}</bdi>) has no effect: {REASONS[reason]}.
            </Text>
          </Table.Td>
        </Table.Tr>
      ))}
    </>
  );
}

function formatWeight(weight: number): string {
  return weight.toLocaleString("en", { maximumSignificantDigits: 3 });
}

function State({ route }: { readonly route: Route }) {
  const { isEnabled, circuit, circuitOpenUntil, coolingDownCode, coolingDownUntil } = route;
  if (!isEnabled) return <StateBadge color="gray" label="Disabled" />;
  if (coolingDownCode !== null) return <StateBadge color="orange" label={COOLING[coolingDownCode]} until={coolingDownUntil} />;
  if (circuit === "OPEN") return <StateBadge color="red" label="Failing" until={circuitOpenUntil} />;
  return circuit === "HALF_OPEN" ? <StateBadge color="yellow" label="Probing" /> : <StateBadge color="green" label="Ready" />;
}

function StateBadge({ color, label, until = null }: { readonly color: string; readonly label: string; readonly until?: string | null }) {
  return (
    <>
      <Badge size="sm" variant="light" color={color}>
        {label}
      </Badge>
      {until !== null && (
        <Text size="xs" c="dimmed">
          until <When value={until} />
        </Text>
      )}
    </>
  );
}

function Reset({ modelId, onChange }: { readonly modelId: string; readonly onChange: RoutesTableProps["onChange"] }) {
  const [, reset] = useMutation(OperatorResetRoutesDocument);
  return (
    <Confirm
      title={`Reset the routes of ${modelId}?`}
      action="Reset routes"
      onConfirm={async () => {
        const { error, data } = await reset({ input: { modelId } });
        if (!error) onChange(data?.resetRoutes?.warnings ?? []);
        return error;
      }}
      trigger={(open) => (
        <Button variant="default" size="compact-sm" onClick={open} aria-label={`Reset ${modelId}`}>
          Reset
        </Button>
      )}
    >
      <Text>All routes and their order return to the configured settings. Added routes are removed.</Text>
    </Confirm>
  );
}

interface EditProps {
  readonly modelId: string;
  readonly route: Route;
  readonly onChange: RoutesTableProps["onChange"];
}

function Edit(props: EditProps) {
  const [isOpen, setOpen] = useState(false);
  const { modelId, route } = props;
  return (
    <>
      <Button variant="default" size="compact-sm" onClick={() => setOpen(true)} aria-label={`Edit ${route.id} of ${modelId}`}>
        Edit
      </Button>
      <FormModal opened={isOpen} onClose={() => setOpen(false)} title={`${route.id} of ${modelId}`}>
        <EditForm {...props} onClose={() => setOpen(false)} />
      </FormModal>
    </>
  );
}

function EditForm({ modelId, route, onChange, onClose }: EditProps & { readonly onClose: () => void }) {
  const [, update] = useMutation(OperatorUpdateRouteDocument);
  const form = useServerForm(["isEnabled", "priority", "weight"]);
  const [isEnabled, setEnabled] = useState(route.isEnabled);
  const [priority, setPriority] = useState<number | string>(route.priority);
  const [weight, setWeight] = useState<number | string>(route.weight);
  const submit = async () => {
    const { upstream, upstreamModel, keyCount, keyNumber } = route;
    const changes = {
      ...(isEnabled !== route.isEnabled && { isEnabled }),
      ...(typeof priority === "number" && priority !== route.priority && { priority }),
      ...(typeof weight === "number" && weight !== route.weight && { weight }),
    };
    if (Object.keys(changes).length === 0) return onClose();
    const place = { modelId, upstream, upstreamModel, ...(keyCount > 1 && { keyNumber }) };
    const answer = await update({ input: { ...place, ...changes } });
    if (!form.accept(answer)) return;
    onChange(answer.data?.updateRoute?.warnings ?? []);
    onClose();
  };
  return (
    <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose}>
      <Switch label="Enabled" checked={isEnabled} onChange={({ target }) => setEnabled(target.checked)} />
      <NumberInput
        label="Priority"
        description="Routes with a lower number are tried first."
        min={0}
        max={NUMBER_MAX}
        allowDecimal={false}
        {...form.input("priority", priority, setPriority)}
      />
      <NumberInput
        label="Weight"
        description="The share of requests within the priority. 0: only after all others."
        min={0}
        max={NUMBER_MAX}
        {...form.input("weight", weight, setWeight)}
      />
    </DialogForm>
  );
}
