/** Common layout of the playground: model and settings at the side, on a phone above the content and collapsed. */
import { Anchor, Button, Stack, Text } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import type { ReactNode } from "react";
import { Link, useSearchParams } from "react-router";
import type { Modality, PlaygroundReceiptFragment } from "../../client/generated/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { Credits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { ModelPicker, useModel } from "./models.js";

const WIDE = "(min-width: 62.01em)";
/** A long model ID ends in dots instead of a cut letter. */
const ELLIPSIS = { label: { display: "block", textOverflow: "ellipsis" } } as const;

export function Workbench({
  summary,
  aside,
  children,
}: {
  readonly summary: string;
  readonly aside: ReactNode;
  readonly children: ReactNode;
}) {
  const isWide = useMediaQuery(WIDE, undefined, { getInitialValueInEffect: false });
  const [isOpen, { toggle }] = useDisclosure();
  const shown = (
    <Stack component="aside" aria-label="Model and settings" gap="md">
      {aside}
    </Stack>
  );
  return (
    <div className="workbench">
      {!isWide && (
        <Button variant="default" onClick={toggle} aria-expanded={isOpen} styles={ELLIPSIS}>
          {isOpen ? "Hide model and settings" : `Model and settings: ${summary}`}
        </Button>
      )}
      {!isWide && isOpen && shown}
      {children}
      {isWide && shown}
    </div>
  );
}

/** Selected model of a modality, stored in the address, and its picker. */
export function useKindModel(modality: Modality) {
  const [search, setSearch] = useSearchParams();
  const requestedId = search.get("model");
  const model = useModel(modality, requestedId);
  const choose = (restId: string) =>
    setSearch(
      (before) => {
        const next = new URLSearchParams(before);
        next.set("model", restId);
        return next;
      },
      { replace: true, preventScrollReset: true },
    );
  const picker = (
    <Card>
      <ModelPicker modality={modality} label="Model" model={model} requestedId={requestedId} onChange={choose} />
    </Card>
  );
  return { model, picker };
}

/** Cost and key facts of a generation, with a link to its receipt. */
export function ReceiptLine({ receipt, children }: { readonly receipt: PlaygroundReceiptFragment; readonly children?: ReactNode }) {
  const { cost, generationId, modelId, modelUsedId, responseMs, warnings } = receipt;
  return (
    <>
      <Text size="xs" c="dimmed" mt={4} className="any-wrap" data-cost={cost}>
        <Credits value={cost} unit /> · {modelUsedId}
        {modelUsedId !== modelId && ` (fallback for ${modelId})`} · {(responseMs / 1_000).toFixed(1)} s ·{" "}
        <Anchor component={Link} to={`${addressOf("usage")}/${generationId}`} inherit underline="always">
          Receipt
        </Anchor>
        {children}
      </Text>
      {warnings.map((warning) => (
        <Text key={warning} size="sm" c="orange" className="any-wrap">
          {warning}
        </Text>
      ))}
    </>
  );
}
