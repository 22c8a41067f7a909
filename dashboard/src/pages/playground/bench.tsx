/** Layout of all types of generation but chat: form and results, with settings at the side. */
import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { type FormEvent, type ReactNode, useState } from "react";
import { Link } from "react-router";
import type { CombinedError } from "urql";
import { addressOf } from "../../shell/pages.js";
import { formatCredits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { AsCode } from "./as-code.js";
import { Refusal } from "./refusal.js";
import type { Request } from "./snippets.js";
import { type useKindModel, Workbench } from "./workbench.js";

/** Form state. `fields` are names in the GraphQL input. */
export function useValues<Values extends object>(none: Values, fields: readonly string[]) {
  const [values, setValues] = useState(none);
  const form = useServerForm(fields);
  const set = <Field extends keyof Values>(field: Field, value: Values[Field]) => setValues((before) => ({ ...before, [field]: value }));
  const restore = (stored: Values) => setValues({ ...none, ...stored });
  const textField = <Field extends keyof Values & string>(field: Field) => form.text(field, values[field], (value) => set(field, value));
  const numberField = <Field extends keyof Values & string>(field: Field) => form.input(field, values[field], (value) => set(field, value));
  return { values, set, restore, form, textField, numberField };
}

export function Bench({
  kind: { model, picker },
  settings,
  children,
}: {
  readonly kind: ReturnType<typeof useKindModel>;
  readonly settings: ReactNode;
  readonly children: ReactNode;
}) {
  const aside = (
    <>
      {picker}
      <Card title="Settings">
        <Stack gap="sm">{settings}</Stack>
      </Card>
    </>
  );
  return (
    <Workbench summary={model?.restId ?? "select a model"} aside={aside}>
      <Stack gap="md" miw={0}>
        {children}
      </Stack>
    </Workbench>
  );
}

/** Part of the result of `useGeneration`. */
export interface Generation {
  readonly isBusy: boolean;
  readonly isStopped: boolean;
  readonly error: CombinedError | undefined;
  readonly setError: (error: CombinedError | undefined) => void;
  /** Null when the generation cannot be stopped here. */
  readonly stop: (() => void) | null;
}

export interface GenerationFormProps {
  readonly generation: Generation;
  readonly title?: string;
  /** Label of the button, such as "Generate image". */
  readonly action: string;
  readonly isDisabled: boolean;
  readonly onSubmit: () => void;
  /** Estimated cost in credits, null while unknown. */
  readonly estimate: string | null;
  readonly request: () => Request;
  /** Content beside the submit button. */
  readonly beside?: ReactNode;
  readonly children: ReactNode;
}

export function GenerationForm({
  generation,
  title,
  action,
  isDisabled,
  onSubmit,
  estimate,
  request,
  beside,
  children,
}: GenerationFormProps) {
  const { isBusy, isStopped, error, setError, stop } = generation;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <Card title={title}>
      <form onSubmit={submit}>
        <Stack gap="sm">
          {children}
          {error && <Refusal error={error} onClose={() => setError(undefined)} />}
          <Stack gap={6}>
            <Group gap="xs">
              <Button type="submit" disabled={isDisabled} loading={isBusy}>
                {action}
              </Button>
              {isBusy && stop && (
                <Button variant="default" onClick={stop}>
                  Stop
                </Button>
              )}
              {beside}
              <AsCode request={request} size="sm" />
            </Group>
            <Text size="xs" c="dimmed" mih={18} role="status" data-estimate={estimate ?? ""}>
              {isStopped && !isBusy ? (
                <>
                  Stopped. You may be charged for the part that was generated. See{" "}
                  <Anchor component={Link} to={addressOf("usage")} inherit underline="always">
                    Usage
                  </Anchor>
                  .
                </>
              ) : (
                estimate !== null && `About ${formatCredits(estimate)} credits`
              )}
            </Text>
          </Stack>
        </Stack>
      </form>
    </Card>
  );
}
