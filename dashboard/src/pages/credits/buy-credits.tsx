/** Buys credits at the gateway's payment processor: a pack or any amount. */
import { Button, Group, Stack, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useMutation } from "urql";
import { CreateCheckoutDocument, type CreditsOfferQuery } from "../../client/generated/graphql.js";
import { formatCredits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure } from "../../ui/states.js";

export type Offer = NonNullable<CreditsOfferQuery["creditSales"]>;

export function BuyCredits({ offer: { packs, least, most, currency } }: { readonly offer: Offer }) {
  const form = useServerForm(["credits"]);
  const [credits, setCredits] = useState(packs[1] ?? packs[0] ?? least);
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
            {packs.map((pack) => (
              <Button
                key={pack}
                variant={pack === credits ? "light" : "default"}
                size="xs"
                aria-pressed={pack === credits}
                onClick={() => {
                  setCredits(pack);
                  form.clear("credits");
                }}
              >
                {pack} credits
              </Button>
            ))}
          </Group>
          <TextInput
            label="Credits"
            description={`One credit costs 1.00 ${currency.toUpperCase()}. From ${formatCredits(least)} to ${formatCredits(most)}.`}
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
