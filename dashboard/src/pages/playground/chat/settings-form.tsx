/** How the model shall answer. What is left empty is the model's own; what may be chosen is said by the gateway. */
import { NumberInput, Select, SimpleGrid, Stack, Textarea } from "@mantine/core";
import type { ReasoningEffort } from "../../../client/generated/graphql.js";
import type { ServerForm } from "../../../ui/server-form.js";
import { type Settings, toolsProblem } from "./conversation.js";

/** As the graph's input names them; the server's messages come back by these names. */
export const SETTING_FIELDS = [
  "temperature",
  "topP",
  "maxTokens",
  "reasoningEffort",
  "seed",
  "presencePenalty",
  "frequencyPenalty",
  "stop",
  "tools",
  "toolChoice",
];

const EFFORTS: readonly { readonly value: ReasoningEffort; readonly label: string }[] = [
  { value: "NONE", label: "not at all" },
  { value: "MINIMAL", label: "as little as it can" },
  { value: "LOW", label: "a little" },
  { value: "MEDIUM", label: "as usual" },
  { value: "HIGH", label: "long" },
  { value: "XHIGH", label: "as long as it can" },
];

const NUMBERS = [
  { field: "temperature", label: "Temperature", step: 0.1 },
  { field: "topP", label: "Top P", step: 0.05 },
  { field: "maxTokens", label: "Max tokens", step: 100 },
  { field: "seed", label: "Seed", step: 1 },
  { field: "presencePenalty", label: "Presence penalty", step: 0.1 },
  { field: "frequencyPenalty", label: "Frequency penalty", step: 0.1 },
] as const;

const TOOLS_EXAMPLE = `[{
  "name": "get_weather",
  "parameters": { "type": "object" }
}]`;

export interface SettingsFormProps {
  readonly settings: Settings;
  readonly onChange: (settings: Settings) => void;
  readonly form: ServerForm;
}

export function SettingsForm({ settings, onChange, form }: SettingsFormProps) {
  const set = <Field extends keyof Settings>(field: Field, value: Settings[Field]) => onChange({ ...settings, [field]: value });
  const text = (field: "systemPrompt" | "stop" | "tools") => form.text(field, settings[field], (value) => set(field, value));
  return (
    <Stack gap="sm">
      <Textarea
        label="System prompt"
        description="How the model shall behave."
        autosize
        minRows={2}
        maxRows={10}
        {...text("systemPrompt")}
      />
      <SimpleGrid cols={2} spacing="sm" verticalSpacing="sm">
        {NUMBERS.map(({ field, label, step }) => (
          <NumberInput
            key={field}
            label={label}
            placeholder="model's own"
            step={step}
            {...form.input(field, settings[field], (value: string | number) => set(field, value))}
            stepHoldDelay={400}
            stepHoldInterval={80}
          />
        ))}
      </SimpleGrid>
      <Select
        label="Thinking"
        placeholder="model's own"
        clearable
        data={EFFORTS}
        {...form.input("reasoningEffort", settings.reasoningEffort, (value: string | null) =>
          set("reasoningEffort", EFFORTS.find((effort) => effort.value === value)?.value ?? null),
        )}
      />
      <Textarea label="Texts that end the answer" description="One a line." autosize minRows={1} maxRows={4} {...text("stop")} />
      <Textarea
        label="Tools as JSON"
        description="Functions that the model may call. You answer the calls yourself."
        placeholder={TOOLS_EXAMPLE}
        autosize
        minRows={4}
        maxRows={16}
        spellCheck={false}
        styles={{ input: { fontFamily: "var(--mono)", fontSize: "0.8125rem" } }}
        {...text("tools")}
        error={toolsProblem(settings.tools) ?? form.errorOf("tools")}
      />
      {settings.tools.trim() !== "" && (
        <Select
          label="Calling tools"
          placeholder="model's own"
          clearable
          data={[
            { value: "auto", label: "when it wants to" },
            { value: "required", label: "always" },
            { value: "none", label: "never" },
          ]}
          {...form.input("toolChoice", settings.toolChoice, (value: string | null) => set("toolChoice", value))}
        />
      )}
    </Stack>
  );
}
