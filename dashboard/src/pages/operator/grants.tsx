/** Form that grants credits to an account. */
import { useMutation } from "urql";
import { type MeterSource, type OperatorAccountPartsFragment, OperatorGrantDocument } from "../../client/generated/graphql.js";
import { CreditsDialog, CreditsForm } from "./credits-form.js";

const BUCKETS: Readonly<Record<MeterSource, string>> = {
  PACK: "Purchased",
  CRYPTO: "Purchased (crypto)",
  TIER: "Free: expires at the next refill",
};

export interface CreditsProps {
  readonly account: OperatorAccountPartsFragment;
  readonly onChange: () => void;
}

/** Asks for confirmation before it grants. Repeated submits grant once. */
export function Grant({ account: { id: accountId, handle }, onChange }: CreditsProps) {
  const [{ fetching }, grant] = useMutation(OperatorGrantDocument);
  return (
    <CreditsDialog title="Grant credits">
      {(close) => (
        <CreditsForm
          creditsDescription="One credit is worth one US dollar."
          bucketLabel={(bucket) => BUCKETS[bucket]}
          noteDescription="Stored in the ledger with the grant."
          question={({ credits, bucket }) => (
            <>
              Grant{" "}
              <strong>
                {credits} credits ({BUCKETS[bucket].toLowerCase()})
              </strong>{" "}
              to <bdi>{handle}</bdi>?
            </>
          )}
          action={({ credits }) => `Grant ${credits} credits`}
          isBusy={fetching}
          send={({ id, bucket, credits, note }) =>
            grant({ input: { accountId, bucket, credits, grantId: id, ...(note !== null && { note }) } })
          }
          onDone={() => {
            onChange();
            close();
          }}
          onClose={close}
        />
      )}
    </CreditsDialog>
  );
}
