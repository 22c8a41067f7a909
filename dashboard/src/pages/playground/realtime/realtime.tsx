/** Realtime voice: talk to a model and hear its answers, with transcript, cost so far and the charge at the end. */
import { MicrophoneIcon, PaperAirplaneIcon, StopIcon } from "@heroicons/react/24/outline";
import { Alert, Anchor, Button, Group, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import { useLive } from "../../../shell/live.js";
import { addressOf } from "../../../shell/pages.js";
import { Credits, formatCredits } from "../../../ui/credits.js";
import { Card } from "../../../ui/page.js";
import { costOf, type PricedKind } from "../../../ui/prices.js";
import { Empty } from "../../../ui/states.js";
import { Bench } from "../bench.js";
import { Elapsed } from "../elapsed.js";
import { useKindModel } from "../workbench.js";
import { useMissingMicrophone } from "./use-microphone.js";
import { type Turn, useVoice } from "./use-voice.js";
import type { VoiceUsage } from "./voice.js";

const PRESS = "press";
const HANDS_FREE = "hands-free";

export default function Realtime() {
  const kind = useKindModel("REALTIME");
  const { model } = kind;
  const [instructions, setInstructions] = useState("");
  const [voice, setVoice] = useState("");
  const [turnTaking, setTurnTaking] = useState(PRESS);
  const missing = useMissingMicrophone();
  const session = useVoice();
  const { feed } = useLive();
  /** The newest charge before the session; undefined before the first session. */
  const [before, setBefore] = useState<string | null>();
  const { state, turns, usage, problem } = session;
  const isOpen = state !== "idle";
  const isHandsFree = turnTaking === HANDS_FREE;
  const start = () => {
    if (!model) return;
    setBefore(feed[0]?.id ?? null);
    void session.start({ model: model.restId, instructions, voice, isHandsFree });
  };
  const settings = (
    <>
      <Textarea
        label="Instructions"
        placeholder="You are a patient teacher."
        autosize
        minRows={3}
        maxRows={10}
        value={instructions}
        onChange={({ currentTarget }) => setInstructions(currentTarget.value)}
        disabled={isOpen}
      />
      {model && model.voices.length > 0 ? (
        <Select
          label="Voice"
          placeholder="Default"
          searchable
          clearable
          data={[...model.voices]}
          value={voice || null}
          onChange={(value) => setVoice(value ?? "")}
          disabled={isOpen}
        />
      ) : (
        <TextInput
          label="Voice"
          placeholder="Default"
          value={voice}
          onChange={({ currentTarget }) => setVoice(currentTarget.value)}
          disabled={isOpen}
        />
      )}
      <Select
        label="Turns"
        description={isHandsFree ? "The model answers when you pause." : "The model answers when you press Send."}
        data={[
          { value: PRESS, label: "Press to talk" },
          { value: HANDS_FREE, label: "Hands-free" },
        ]}
        value={turnTaking}
        onChange={(value) => setTurnTaking(value ?? PRESS)}
        allowDeselect={false}
        disabled={isOpen}
      />
    </>
  );
  return (
    <Bench kind={kind} settings={settings}>
      <Card title="Voice session">
        <Stack gap="sm">
          {typeof missing === "string" && !isOpen ? (
            <Alert color="orange" variant="light" title="No voice without a microphone">
              {missing}
            </Alert>
          ) : (
            <Group gap="xs">
              {isOpen ? (
                <>
                  {!isHandsFree && <TalkButton state={state} onTalk={session.talk} onSend={session.send} />}
                  <Button color="red" variant="light" onClick={session.stop} leftSection={<StopIcon width={16} />}>
                    End session
                  </Button>
                </>
              ) : (
                <Button onClick={start} disabled={!model || missing === undefined} leftSection={<MicrophoneIcon width={16} />}>
                  Start session
                </Button>
              )}
              <Text size="sm" role="status">
                {labelOf(state, isHandsFree)}
              </Text>
              {isOpen && state !== "connecting" && <Elapsed />}
            </Group>
          )}
          {problem !== null && (
            <Alert color="red" variant="light" role="alert">
              <Text size="sm" className="any-wrap">
                {problem}{" "}
                {state === "idle" && (
                  <Anchor component={Link} to={addressOf("logs")} inherit underline="always">
                    View logs
                  </Anchor>
                )}
              </Text>
            </Alert>
          )}
          <Cost model={model} usage={usage} isOpen={isOpen} before={before} />
        </Stack>
      </Card>
      <Card title="Transcript">
        <Transcript turns={turns} />
      </Card>
    </Bench>
  );
}

function TalkButton({
  state,
  onTalk,
  onSend,
}: {
  readonly state: ReturnType<typeof useVoice>["state"];
  readonly onTalk: () => void;
  readonly onSend: () => void;
}) {
  return state === "talking" ? (
    <Button onClick={onSend} leftSection={<PaperAirplaneIcon width={16} />}>
      Send
    </Button>
  ) : (
    <Button onClick={onTalk} disabled={state !== "ready"} leftSection={<MicrophoneIcon width={16} />}>
      Talk
    </Button>
  );
}

function labelOf(state: ReturnType<typeof useVoice>["state"], isHandsFree: boolean): string {
  switch (state) {
    case "idle":
      return "";
    case "connecting":
      return "Connecting…";
    case "talking":
      return "The microphone is on.";
    case "waiting":
      return "Waiting for the answer…";
    case "ready":
      return isHandsFree ? "The microphone is on. Talk." : "Press Talk, and speak.";
  }
}

interface CostProps {
  readonly model: ReturnType<typeof useKindModel>["model"];
  readonly usage: VoiceUsage;
  readonly isOpen: boolean;
  readonly before: string | null | undefined;
}

/** An estimate of the answers so far, and the charge once the gateway has made it, which it does when the session ends. */
function Cost({ model, usage, isOpen, before }: CostProps) {
  const { feed } = useLive();
  if (before === undefined || !model) {
    return (
      <Text size="xs" c="dimmed">
        A session is charged to your balance when it ends, for the audio and text of its answers and questions.
      </Text>
    );
  }
  const known = feed.findIndex(({ id }) => id === before);
  const charges = isOpen ? [] : feed.slice(0, known === -1 ? feed.length : known);
  const charged = charges.find(({ modality, modelId }) => modality === "REALTIME" && modelId === model.restId);
  if (charged) {
    return (
      <Text size="xs" c="dimmed" role="status" data-cost={charged.cost}>
        Charged <Credits value={charged.cost} unit /> ·{" "}
        <Anchor component={Link} to={`${addressOf("usage")}/${encodeURIComponent(charged.id)}`} inherit underline="always">
          Receipt
        </Anchor>
      </Text>
    );
  }
  const amounts = new Map(Object.entries(usage).map(([kind, tokens]) => [kind as PricedKind, String(tokens)]));
  const estimate = costOf(model.pricing, amounts);
  return (
    <Text size="xs" c="dimmed" role="status" data-estimate={estimate}>
      About {formatCredits(estimate)} credits so far
    </Text>
  );
}

function Transcript({ turns }: { readonly turns: readonly Turn[] }) {
  if (turns.length === 0) return <Empty title="Nothing said yet">Start a session and talk. The model's words appear here.</Empty>;
  return (
    <Stack gap="sm" role="log" aria-label="Transcript">
      {turns.map(({ id, isOwn, text }) => (
        <div key={id}>
          <Text size="xs" c="dimmed" fw={600}>
            {isOwn ? "You" : "Model"}
          </Text>
          <Text size="sm" className="any-wrap" {...(isOwn && { c: "dimmed" })}>
            {text}
          </Text>
        </div>
      ))}
    </Stack>
  );
}
