/** Wizard that creates a model or agent in four steps. A field error leads back to the step of the field. */
import { Button, Group, Radio, Stack, Stepper, Text } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { type CombinedError, useMutation, useQuery } from "urql";
import {
  MyModelsCreateCodeDocument,
  MyModelsCreateEndpointDocument,
  MyModelsCreatePromptDocument,
  MyModelsCreateProxyDocument,
  MyModelsWhoDocument,
} from "../../client/generated/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { Card, Page } from "../../ui/page.js";
import { hasErrorFor, mergeForms, useServerForm } from "../../ui/server-form.js";
import { Failure } from "../../ui/states.js";
import { type Draft, forgetDraft, type Kind, toCode, toEndpoint, toPrompt, toProxy, useStoredDraft } from "./draft.js";
import { ALL_FIELDS, NAME_FIELDS, NamePart, SOURCE_FIELDS, SourcePart, TERMS_FIELDS } from "./fields.js";
import { KIND_LABELS } from "./labels.js";
import { AskAboutPrices, usePriceQuestion } from "./price-question.js";
import { Probe } from "./probe.js";
import { HowToPublish } from "./publishing.js";
import { TermsPart } from "./terms.js";

const STEPS = ["Type", "Source", "Name", "Terms"] as const;
const FIELDS_OF_STEPS: readonly (readonly string[])[] = [[], SOURCE_FIELDS, NAME_FIELDS, TERMS_FIELDS];
export const OUTDATED = {
  additionalTypenames: ["CommunityModelConnection", "ProxyModel", "PromptAgent", "CodeAgent", "EndpointAgentModel"],
};

export function NewModel() {
  const [draft, setDraft] = useStoredDraft();
  const [search, setSearch] = useSearchParams();
  const [{ data }] = useQuery({ query: MyModelsWhoDocument });
  const create = useCreate();
  const navigate = useNavigate();
  const form = useServerForm(ALL_FIELDS);
  const probeForm = useServerForm(SOURCE_FIELDS);
  const [isBusy, setBusy] = useState(false);
  const prices = usePriceQuestion();
  const step = Math.min(Math.max(Number(search.get("step") ?? "1") - 1 || 0, 0), STEPS.length - 1);
  const isPublisher = data?.me?.isPublisher ?? true;
  const goTo = (next: number) => setSearch(next === 0 ? {} : { step: String(next + 1) });
  const set = (changes: Partial<Draft>) => setDraft((before) => ({ ...before, ...changes }));
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (step < STEPS.length - 1) {
      goTo(step + 1);
      return;
    }
    if (!(await prices.confirm(draft))) return;
    setBusy(true);
    const { id, error } = await create(draft);
    setBusy(false);
    if (form.accept({ error }) && id !== undefined) {
      forgetDraft();
      void navigate(`${addressOf("my-models")}/${encodeURIComponent(id)}`, { replace: true });
      return;
    }
    const wrong = error ? FIELDS_OF_STEPS.findIndex((fields) => fields.some((field) => hasErrorFor(error, field))) : -1;
    if (wrong >= 0 && wrong !== step) goTo(wrong);
  };
  return (
    <Page
      title="Create model or agent"
      above={[{ label: "My models", to: addressOf("my-models") }]}
      description="Your draft is kept in this tab until you create the model."
    >
      {prices.question && <AskAboutPrices question={prices.question} />}
      {data?.me && !isPublisher && <HowToPublish handle={data.me.handle} />}
      <Card>
        <form onSubmit={submit} noValidate>
          <Stack gap="lg" maw="42rem">
            <Text size="sm" c="dimmed" hiddenFrom="sm" role="status">
              Step {step + 1} of {STEPS.length}: {STEPS[step]}
            </Text>
            <Stepper active={step} onStepClick={goTo} size="sm" visibleFrom="sm" allowNextStepsSelect>
              {STEPS.map((label, index) => (
                <Stepper.Step
                  key={label}
                  label={label}
                  {...(FIELDS_OF_STEPS[index]?.some((field) => form.errorOf(field) !== undefined) && {
                    color: "red",
                    description: "Has errors",
                  })}
                />
              ))}
            </Stepper>
            {form.rest && <Failure error={form.rest} />}
            {step === 0 && <KindPart draft={draft} set={set} />}
            {step === 1 && (
              <>
                <SourcePart draft={draft} set={set} form={mergeForms(form, probeForm)} />
                {(draft.kind === "proxy" || draft.kind === "endpoint") && <Probe input={toTest(draft)} form={probeForm} />}
              </>
            )}
            {step === 2 && <NamePart draft={draft} set={set} form={form} />}
            {step === 3 && <TermsPart draft={draft} set={set} form={form} isPublisher={isPublisher} />}
            <Group justify="space-between">
              {step === 0 ? (
                <span />
              ) : (
                <Button variant="default" onClick={() => goTo(step - 1)}>
                  Back
                </Button>
              )}
              <Button type="submit" loading={isBusy}>
                {step === STEPS.length - 1 ? `Create ${KIND_LABELS[draft.kind].name.toLowerCase()}` : "Next"}
              </Button>
            </Group>
          </Stack>
        </form>
      </Card>
    </Page>
  );
}

function KindPart({ draft, set }: { readonly draft: Draft; readonly set: (changes: Partial<Draft>) => void }) {
  return (
    <Radio.Group label="Type" value={draft.kind} onChange={(kind) => set({ kind: kind as Kind })}>
      <Stack gap="sm" mt="xs">
        {(Object.keys(KIND_LABELS) as Kind[]).map((kind) => (
          <Radio key={kind} value={kind} label={KIND_LABELS[kind].name} description={KIND_LABELS[kind].description} />
        ))}
      </Stack>
    </Radio.Group>
  );
}

function useCreate() {
  const [, proxy] = useMutation(MyModelsCreateProxyDocument);
  const [, endpoint] = useMutation(MyModelsCreateEndpointDocument);
  const [, prompt] = useMutation(MyModelsCreatePromptDocument);
  const [, code] = useMutation(MyModelsCreateCodeDocument);
  return async (draft: Draft): Promise<{ readonly id: string | undefined; readonly error: CombinedError | undefined }> => {
    switch (draft.kind) {
      case "proxy": {
        const { data, error } = await proxy({ input: toProxy(draft) }, OUTDATED);
        return { id: data?.createCommunityModel?.communityModel.id, error };
      }
      case "endpoint": {
        const { data, error } = await endpoint({ input: toEndpoint(draft) }, OUTDATED);
        return { id: data?.createEndpointAgent?.agent.id, error };
      }
      case "prompt": {
        const { data, error } = await prompt({ input: toPrompt(draft) }, OUTDATED);
        return { id: data?.createPromptAgent?.agent.id, error };
      }
      case "code": {
        const { data, error } = await code({ input: toCode(draft) }, OUTDATED);
        return { id: data?.createCodeAgent?.agent.id, error };
      }
    }
  };
}

function toTest({ kind, modality, api, url, bearerToken, upstreamModel, name }: Draft) {
  const isText = kind === "endpoint" || modality === "TEXT";
  return {
    ...(isText ? { modality: "TEXT" as const, api, url } : { modality, baseUrl: url }),
    ...(kind === "proxy" && bearerToken !== "" && { bearerToken }),
    upstreamModel: upstreamModel || name || "model",
  };
}
