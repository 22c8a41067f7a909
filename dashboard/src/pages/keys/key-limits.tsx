/** Limits of a key that renew. */
import { useMemo } from "react";
import { useAnswer } from "../../client/answer.js";
import { KeysLimitsDocument } from "../../client/generated/graphql.js";
import { UsageLimits } from "../../ui/usage-limits.js";

/** `isEditable`: false for a key that has ended. */
export function KeyLimits({ id, isEditable }: { readonly id: string; readonly isEditable: boolean }) {
  const { data, refetch } = useAnswer({ query: KeysLimitsDocument, variables: useMemo(() => ({ id }), [id]) });
  const limits = data?.me?.usageLimits?.nodes ?? [];
  if (limits.length === 0 && !isEditable) return null;
  return (
    <UsageLimits
      title="Limits that renew"
      subject="The key"
      none="No limits by minute, hour, day, week or month."
      place={{ apiKeyId: id }}
      limits={limits}
      isEditable={isEditable}
      onChange={refetch}
    />
  );
}
