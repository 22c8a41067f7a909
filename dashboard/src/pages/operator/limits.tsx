/** Limits that renew, as operators set them: of an account, and of models over all accounts. */
import { useMemo } from "react";
import { useAnswer } from "../../client/answer.js";
import { OperatorLimitsDocument, OperatorModelLimitsDocument } from "../../client/generated/graphql.js";
import { UsageLimits } from "../../ui/usage-limits.js";

interface AccountLimitsProps {
  readonly accountId: string;
  readonly onChange: () => void;
}

export function AccountLimits({ accountId, onChange }: AccountLimitsProps) {
  const { data, refetch } = useAnswer({ query: OperatorLimitsDocument, variables: useMemo(() => ({ id: accountId }), [accountId]) });
  return (
    <UsageLimits
      title="Limits of the account"
      subject="The account"
      none="No limits. Those of its keys are set by the account."
      place={{ accountId }}
      limits={data?.account?.usageLimits?.nodes ?? []}
      onChange={() => {
        refetch();
        onChange();
      }}
    />
  );
}

const NO_VARIABLES = {};

export function ModelLimits() {
  const { data, refetch } = useAnswer({ query: OperatorModelLimitsDocument, variables: NO_VARIABLES });
  return (
    <UsageLimits
      title="Limits of models"
      subject="The model"
      none="No limits of a model over all accounts. Limits of routes are those of their vendors."
      place={{ allAccounts: true }}
      limits={data?.modelLimits?.nodes ?? []}
      onChange={refetch}
    />
  );
}
