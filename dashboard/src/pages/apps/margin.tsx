/** The margin of an own app, for keys that are granted from now on. */
import { Anchor, Button, NumberInput, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import { useMutation } from "urql";
import { type AppsOwnKeyFragment, AppsSetMarginDocument } from "../../client/generated/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { FormModal } from "../../ui/form-modal.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";

interface Props {
  readonly app: AppsOwnKeyFragment;
  readonly onChanged: () => void;
}

export function Margin({ app, onChanged }: Props) {
  const [isEditing, setEditing] = useState(false);
  const { marginPercent, marginPercentMax, revokedAt } = app;
  const most = marginPercentMax ?? 0;
  const charged = Math.min(marginPercent, most);
  return (
    <Card title="Margin">
      <Stack gap="xs" align="flex-start">
        {most === 0 ? (
          <Text size="sm">The operator of this gateway allows no margins: users pay the prices of the models.</Text>
        ) : (
          <>
            <Text size="sm">
              {charged === 0
                ? "Users pay the prices of the models, and you earn nothing."
                : `Users pay ${charged}% on top of the prices of models. You earn it when they pay with credits that they bought.`}
              {marginPercent > most && ` You set ${marginPercent}%, but the operator allows at most ${most}%.`}
            </Text>
            <Text size="sm" c="dimmed">
              Every user sees the margin before they approve the app. The total is under{" "}
              <Anchor component={Link} to={addressOf("my-models")} size="sm">
                My models
              </Anchor>
              .
            </Text>
            {revokedAt === null && (
              <Button size="compact-sm" variant="default" onClick={() => setEditing(true)}>
                Change margin
              </Button>
            )}
          </>
        )}
      </Stack>
      {isEditing && (
        <EditMargin
          app={app}
          onChanged={() => {
            setEditing(false);
            onChanged();
          }}
          onClose={() => setEditing(false)}
        />
      )}
    </Card>
  );
}

function EditMargin({ app, onChanged, onClose }: Props & { readonly onClose: () => void }) {
  const [, setMargin] = useMutation(AppsSetMarginDocument);
  const form = useServerForm(["marginPercent"]);
  const [percent, setPercent] = useState<string | number>(app.marginPercent);
  const submit = async () => {
    // An empty field is refused by the gateway like any other wrong number.
    const marginPercent = percent === "" ? -1 : Number(percent);
    if (form.accept(await setMargin({ input: { appId: app.restId, marginPercent } }))) onChanged();
  };
  return (
    <FormModal opened onClose={onClose} title={`Margin of ${app.name}`}>
      <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose}>
        <NumberInput
          label="Margin in percent"
          description={`From 0 to ${app.marginPercentMax ?? 0}, the most that the operator allows. Keys that users have granted keep the margin that they agreed to.`}
          {...form.input<string | number, string | number>("marginPercent", percent, setPercent)}
          allowDecimal={false}
          suffix=" %"
          data-autofocus
        />
      </DialogForm>
    </FormModal>
  );
}
