/** Chat with one model, or with two side by side. */
import { Button, Group, Stack, Text } from "@mantine/core";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useSearchParams } from "react-router";
import type { CombinedError } from "urql";
import { useLive } from "../../../shell/live.js";
import { formatCredits, sumOfCredits } from "../../../ui/credits.js";
import { Card } from "../../../ui/page.js";
import { useServerForm } from "../../../ui/server-form.js";
import { Empty } from "../../../ui/states.js";
import { AsCode } from "../as-code.js";
import { newId, readItem, saveItem, useHistory } from "../history.js";
import { HistoryDrawer } from "../history-drawer.js";
import { ModelPicker, useModel, useOtherModel } from "../models.js";
import { Workbench } from "../workbench.js";
import { affordableTokens } from "./affordable.js";
import type { Attachment } from "./attachments.js";
import { Composer } from "./composer.js";
import { chatRequest, messagesFor, NO_SETTINGS, type Turn, titleOf, toInput, toolsProblem } from "./conversation.js";
import { toSettings, toValues } from "./preset-values.js";
import { Presets } from "./presets.js";
import { SETTING_FIELDS, SettingsForm } from "./settings-form.js";
import { Thread } from "./thread.js";
import { useChat } from "./use-chat.js";
import { useCosts } from "./use-costs.js";

export default function Chat() {
  const [search, setSearch] = useSearchParams();
  const requestedId = search.get("model");
  const requestedSecondId = search.get("with");
  const model = useModel("TEXT", requestedId);
  const secondModel = useModel("TEXT", requestedSecondId);
  const models = requestedSecondId === null ? [model] : [model, secondModel];
  const other = useOtherModel("TEXT", model);
  const set = useCallback(
    (changes: Readonly<Record<string, string | null>>) =>
      setSearch(
        (before) => {
          const next = new URLSearchParams(before);
          for (const [name, value] of Object.entries(changes)) {
            if (value === null) next.delete(name);
            else next.set(name, value);
          }
          return next;
        },
        { replace: true, preventScrollReset: true },
      ),
    [setSearch],
  );

  const [text, setText] = useState("");
  const [attachments, setAttachments] = useState<readonly Attachment[]>([]);
  const [settings, setSettings] = useState(NO_SETTINGS);
  const [presetId, setPresetId] = useState<string | null>(null);
  const [error, setError] = useState<CombinedError>();
  const form = useServerForm(SETTING_FIELDS);
  const { me } = useLive();
  const account = me?.restId ?? null;
  const history = useHistory(account, "chat");
  const id = useRef<string | null>(null);

  const save = useCallback(
    (turns: readonly Turn[]) => {
      if (account === null || id.current === null || turns.length === 0) return;
      const first = model?.restId ?? requestedId;
      // One side each: without the first, the second would take its place.
      if (first === null) return;
      const second = secondModel?.restId ?? requestedSecondId;
      const chosen = requestedSecondId === null || second === null ? [first] : [first, second];
      void saveItem(account, "chat", { id: id.current, title: titleOf(turns), models: chosen, content: { settings, turns } });
    },
    [account, model?.restId, secondModel?.restId, requestedId, requestedSecondId, settings],
  );
  const chat = useChat({
    models: models.flatMap((chosen) => (chosen ? [chosen.restId] : [])),
    settings,
    onRefused: (failure, removed) => {
      setError(failure);
      form.accept({ error: failure });
      if (removed === null) return;
      setText((typed) => (typed.trim() === "" ? (removed.text ?? "") : typed));
      setAttachments((chosen) => (chosen.length === 0 ? (removed.attachments ?? []) : chosen));
    },
    onAccepted: () => {
      setError(undefined);
      form.accept({});
    },
    onLeft: save,
  });
  const { turns, isRunning, show, setCost } = chat;
  useEffect(() => save(turns), [save, turns]);
  useCosts(turns, setCost);

  const shownId = search.get("conversation");
  useEffect(() => {
    if (account === null || shownId === id.current) return;
    id.current = shownId;
    setError(undefined);
    if (shownId === null) return show([]);
    void readItem(account, "chat", shownId).then((found) => {
      if (id.current !== shownId) return;
      show(found?.content.turns ?? []);
      if (!found) return;
      setSettings({ ...NO_SETTINGS, ...found.content.settings });
      setPresetId(null);
      set({ model: found.models[0] ?? null, with: found.models[1] ?? null });
    });
  }, [account, shownId, show, set]);

  const startNew = () => {
    id.current = null;
    setError(undefined);
    show([]);
    set({ conversation: null });
  };
  const blockedReason = models.includes(null)
    ? "Select a model first."
    : toolsProblem(settings.tools) === null
      ? null
      : "Fix the tools in the settings first.";
  const send = () => {
    if (id.current === null) {
      id.current = newId();
      set({ conversation: id.current });
    }
    setError(undefined);
    setText("");
    setAttachments([]);
    chat.send(text, attachments);
  };
  const isEmpty = text.trim() === "" && attachments.length === 0;
  // The request reads the settings of the render before it.
  const [isLimited, setLimited] = useState(false);
  useEffect(() => {
    if (!isLimited) return;
    setLimited(false);
    if (!isEmpty && !isRunning) send();
  });
  const costs = useMemo(() => turns.flatMap(({ answers }) => answers.flatMap((answer) => (answer?.cost ? [answer.cost] : []))), [turns]);
  const request = () => {
    const draft: Turn = { id: "draft", text: isEmpty ? "Hello" : text, attachments, results: null, answers: [null] };
    const last = turns.at(-1);
    const messages =
      isEmpty && last
        ? messagesFor(turns, last.id, 0, settings.systemPrompt)
        : messagesFor([...turns, draft], "draft", 0, settings.systemPrompt);
    const areToolsValid = toolsProblem(settings.tools) === null;
    return chatRequest(toInput(model?.restId ?? "MODEL", messages, areToolsValid ? settings : { ...settings, tools: "" }));
  };
  const aside = (
    <>
      <Presets
        chosenId={presetId}
        values={toolsProblem(settings.tools) === null ? toValues(model?.restId ?? requestedId, settings) : null}
        onChoose={(preset) => {
          setPresetId(preset?.id ?? null);
          if (preset === null) return;
          setSettings(toSettings(preset));
          if (preset.modelId !== null) set({ model: preset.modelId });
        }}
      />
      <Card>
        <Stack gap="sm">
          <ModelPicker
            modality="TEXT"
            label="Model"
            model={model}
            requestedId={requestedId}
            onChange={(chosen) => set({ model: chosen })}
          />
          {requestedSecondId === null ? (
            <Button
              variant="default"
              size="compact-sm"
              onClick={() => set({ model: model?.restId ?? null, with: other?.restId ?? model?.restId ?? null })}
              disabled={!model}
              w="fit-content"
            >
              Compare with another model
            </Button>
          ) : (
            <>
              <ModelPicker
                modality="TEXT"
                label="Second model"
                model={secondModel}
                requestedId={requestedSecondId}
                onChange={(chosen) => set({ with: chosen })}
              />
              <Button variant="default" size="compact-sm" onClick={() => set({ with: null })} w="fit-content">
                Stop comparing
              </Button>
            </>
          )}
        </Stack>
      </Card>
      <Card title="Settings">
        <SettingsForm settings={settings} onChange={setSettings} form={form} />
      </Card>
    </>
  );
  return (
    <Workbench summary={model?.restId ?? "select a model"} aside={aside}>
      <div className="chat">
        <Group gap="xs" justify="space-between">
          <Text size="sm" c="dimmed" data-total={costs.length > 0 ? sumOfCredits(costs) : ""}>
            {costs.length > 0 ? `This conversation: ${formatCredits(sumOfCredits(costs))} credits` : "No credits spent yet"}
          </Text>
          <Group gap="xs">
            <Button variant="default" size="compact-sm" onClick={startNew} disabled={turns.length === 0}>
              New
            </Button>
            <HistoryDrawer
              history={history}
              current={id.current}
              parameter="conversation"
              things="conversations"
              onDeleted={(ids) => {
                if (id.current !== null && ids.includes(id.current)) startNew();
              }}
            />
            <AsCode request={request} />
          </Group>
        </Group>
        <Thread
          chat={chat}
          models={models}
          systemPrompt={settings.systemPrompt}
          empty={
            <Empty title={requestedSecondId === null ? "Start a conversation" : "Compare two models"}>
              Answers stream in as they are generated. Each shows its cost, which is charged to your balance.
            </Empty>
          }
        />
        <Composer
          text={text}
          onText={setText}
          attachments={attachments}
          onAttachments={setAttachments}
          takesPictures={models.every((chosen) => chosen?.inputModalities.includes("IMAGE") ?? true)}
          isRunning={isRunning}
          blockedReason={blockedReason}
          error={error}
          onErrorClose={() => setError(undefined)}
          limit={model && requestedSecondId === null && error ? affordableTokens(error, model, settings.maxTokens) : null}
          onLimit={(maxTokens) => {
            setSettings((before) => ({ ...before, maxTokens }));
            setLimited(true);
          }}
          onSend={send}
          onStop={chat.stop}
        />
      </div>
    </Workbench>
  );
}
