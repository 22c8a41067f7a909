/** Question before a model is saved with an unusually high price. */
import { Button, Group, List, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { type Draft, pricesOf } from "./draft.js";
import { PRICE_LABELS, UNIT_LABELS } from "./labels.js";
import { HIGH_PER_MILLION, highPrices, priceUnitOf, toExactPrice } from "./typed-prices.js";

export interface PriceQuestion {
  readonly draft: Draft;
  readonly answer: (isMeant: boolean) => void;
}

/** `confirm` resolves at once when no price is high. Render `question` while there is one. */
export function usePriceQuestion() {
  const [question, setQuestion] = useState<PriceQuestion | null>(null);
  const confirm = (draft: Draft): Promise<boolean> =>
    draft.kind !== "proxy" || highPrices(draft, pricesOf(draft.modality)).length === 0
      ? Promise.resolve(true)
      : new Promise((resolve) =>
          setQuestion({
            draft,
            answer: (isMeant) => {
              setQuestion(null);
              resolve(isMeant);
            },
          }),
        );
  return { confirm, question };
}

export function AskAboutPrices({ question: { draft, answer } }: { readonly question: PriceQuestion }) {
  return (
    <Modal opened onClose={() => answer(false)} title="Are these prices right?" centered>
      <Stack>
        <Text>Models rarely cost more than {HIGH_PER_MILLION.toLocaleString("en")} credits per million. Callers would pay:</Text>
        <List>
          {highPrices(draft, pricesOf(draft.modality)).map((field) => {
            const unit = priceUnitOf(draft, field);
            return (
              <List.Item key={field}>
                {PRICE_LABELS[field]}: {draft.prices[field]} credits {UNIT_LABELS[unit]}, {toExactPrice(draft, field)} per {unit}
              </List.Item>
            );
          })}
        </List>
        <Group justify="flex-end">
          <Button variant="default" onClick={() => answer(false)}>
            Change prices
          </Button>
          <Button onClick={() => answer(true)}>Use these prices</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
