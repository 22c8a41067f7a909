/** A generation that is answered as a whole: asked for by a form, stopped by a button; one at a time. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { AnyVariables, CombinedError, TypedDocumentNode } from "urql";
import { sendGeneration } from "../../client/generate.js";

export function useGeneration<Data extends object, Variables extends AnyVariables>(document: TypedDocumentNode<Data, Variables>) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<CombinedError>();
  const leave = useRef<(() => void) | null>(null);
  useEffect(() => () => leave.current?.(), []);

  const run = useCallback(
    async (variables: Variables): Promise<{ readonly data?: Data | undefined; readonly error?: CombinedError | undefined }> => {
      leave.current?.();
      setBusy(true);
      setError(undefined);
      const { answer, stop } = sendGeneration(document, variables);
      leave.current = stop;
      const settled = await answer;
      // What was stopped has left the form to whoever asks next.
      if (leave.current !== stop) return {};
      leave.current = null;
      const { data, error: met } = settled ?? {};
      setBusy(false);
      setError(met);
      return { ...(data && { data }), ...(met && { error: met }) };
    },
    [document],
  );
  /** Whether an upstream that has begun is paid for all the same, the receipt tells. */
  const stop = useCallback(() => {
    leave.current?.();
    leave.current = null;
    setBusy(false);
  }, []);
  return { isBusy, error, setError, run, stop };
}
