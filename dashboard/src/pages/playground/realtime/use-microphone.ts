import { useEffect, useState } from "react";

const INSECURE = "Browsers give the microphone to https pages only.";
const NONE = "No microphone found. Connect one, and it appears here.";

/** Why there is no microphone to talk with; null: there is one. Undefined until the browser has answered. */
export function useMissingMicrophone(): string | null | undefined {
  const [reason, setReason] = useState<string | null>();
  useEffect(() => {
    // Undefined on pages without https.
    const devices: MediaDevices | undefined = navigator.mediaDevices;
    if (devices === undefined) return setReason(INSECURE);
    const look = () =>
      devices.enumerateDevices().then(
        (found) => setReason(found.some(({ kind }) => kind === "audioinput") ? null : NONE),
        () => setReason(NONE),
      );
    void look();
    devices.addEventListener("devicechange", look);
    return () => devices.removeEventListener("devicechange", look);
  }, []);
  return reason;
}
