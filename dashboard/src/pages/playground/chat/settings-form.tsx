/** Settings of a chat request. Empty settings use the model's defaults, and the gateway validates the values. */
import { NumberInput, Select, SimpleGrid, Stack, Textarea } from "@mantine/core";
import type { ReasoningEffort } from "../../../client/generated/graphql.js";
import type { ServerForm } from "../../../ui/server-form.js";
import { type Settings, toolsProblem } from "./conversation.js";

/** Names in the GraphQL input, to which field errors refer. */
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
  { value: "NONE", label: "None" },
  { value: "MINIMAL", label: "Minimal" },
  { value: "LOW", label: "Low" },
  { value: "MEDIUM", label: "Medium" },
  { value: "HIGH", label: "High" },
  { value: "XHIGH", label: "Extra high" },
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
        description="How the model should behave."
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
            placeholder="Default"
            step={step}
            {...form.input(field, settings[field], (value: string | number) => set(field, value))}
            stepHoldDelay={400}
            stepHoldInterval={80}
          />
        ))}
      </SimpleGrid>
      <Select
        label="Reasoning effort"
        placeholder="Default"
        clearable
        data={EFFORTS}
        {...form.input("reasoningEffort", settings.reasoningEffort, (value: string | null) =>
          set("reasoningEffort", EFFORTS.find((effort) => effort.value === value)?.value ?? null),
        )}
      />
      <Textarea label="Stop sequences" description="One per line." autosize minRows={1} maxRows={4} {...text("stop")} />
      <Textarea
        label="Tools (JSON)"
        description="Functions that the model can call. You enter their results yourself."
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
          label="Tool choice"
          placeholder="Default"
          clearable
          data={[
            { value: "auto", label: "Auto" },
            { value: "required", label: "Required" },
            { value: "none", label: "None" },
          ]}
          {...form.input("toolChoice", settings.toolChoice, (value: string | null) => set("toolChoice", value))}
        />
      )}
    </Stack>
  );
}
