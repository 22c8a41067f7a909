/** Runs one generation at a time, without streaming. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { AnyVariables, CombinedError, TypedDocumentNode } from "urql";
import { sendGeneration } from "../../client/generate.js";

export function useGeneration<Data extends object, Variables extends AnyVariables>(document: TypedDocumentNode<Data, Variables>) {
  const [isBusy, setBusy] = useState(false);
  const [isStopped, setStopped] = useState(false);
  const [error, setError] = useState<CombinedError>();
  const leave = useRef<(() => void) | null>(null);
  useEffect(() => () => leave.current?.(), []);

  const run = useCallback(
    async (variables: Variables): Promise<{ readonly data?: Data | undefined; readonly error?: CombinedError | undefined }> => {
      leave.current?.();
      setBusy(true);
      setStopped(false);
      setError(undefined);
      const { answer, stop } = sendGeneration(document, variables);
      leave.current = stop;
      const settled = await answer;
      // The generation was stopped, or another one has replaced it.
      if (leave.current !== stop) return {};
      leave.current = null;
      const { data, error: failure } = settled ?? {};
      setBusy(false);
      setError(failure);
      return { ...(data && { data }), ...(failure && { error: failure }) };
    },
    [document],
  );
  const stop = useCallback(() => {
    leave.current?.();
    leave.current = null;
    setBusy(false);
    setStopped(true);
  }, []);
  return { isBusy, isStopped, error, setError, run, stop };
}
