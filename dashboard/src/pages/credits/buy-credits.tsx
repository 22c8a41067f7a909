/** Buys credits at the gateway's payment processor. */
import { Button, Group, Stack, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useMutation, useQuery } from "urql";
import { CreateCheckoutDocument, CreditsOfferDocument } from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure } from "../../ui/states.js";

const AMOUNTS = ["5", "10", "25", "100"];

/** Nothing on a gateway that sells no credits. */
export function BuyCredits() {
  const [{ data }] = useQuery({ query: CreditsOfferDocument });
  return data?.areCreditsSold ? <Form /> : null;
}

function Form() {
  const form = useServerForm(["credits"]);
  const [credits, setCredits] = useState("10");
  const [{ fetching }, createCheckout] = useMutation(CreateCheckoutDocument);
  const buy = async (event: FormEvent) => {
    event.preventDefault();
    const answer = await createCheckout({ input: { credits: credits.trim() } });
    if (form.accept(answer) && answer.data?.createCheckout) window.location.assign(answer.data.createCheckout.url);
  };
  return (
    <Card title="Buy credits">
      <form onSubmit={(event) => void buy(event)} noValidate>
        <Stack gap="sm">
          {form.rest && <Failure error={form.rest} />}
          <Group gap={6}>
            {AMOUNTS.map((amount) => (
              <Button
                key={amount}
                variant={amount === credits ? "light" : "default"}
                size="xs"
                aria-pressed={amount === credits}
                onClick={() => {
                  setCredits(amount);
                  form.clear("credits");
                }}
              >
                {amount} credits
              </Button>
            ))}
          </Group>
          <TextInput
            label="Credits"
            description="One credit costs 1.00 USD. From 1 to 10,000."
            inputMode="decimal"
            maw="16rem"
            {...form.text("credits", credits, setCredits)}
          />
          <Group>
            <Button type="submit" loading={fetching}>
              Continue to payment
            </Button>
          </Group>
        </Stack>
      </form>
    </Card>
  );
}
