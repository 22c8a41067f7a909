/** What an app sends people to, or asks, for a key of theirs (docs/authorization.md). */
import { shellQuoted } from "../../ui/program-text.js";

export interface Asked {
  /** Empty: it does not say who it is. */
  readonly appKey: string;
  readonly redirectUrl: string;
  readonly models: readonly string[];
  /** Credits; empty: as the gateway has it. */
  readonly budget: string;
  /** Empty: as the gateway has it. */
  readonly days: string;
  readonly permissions: readonly string[];
  readonly state: string;
  /** With a code that a server exchanges, or with the key in the fragment. */
  readonly answer: "code" | "key";
}

/** The app makes one for each person, and keeps what it is made of. */
const CHALLENGE = "CODE_CHALLENGE";

/** `base`: where people sign in. */
export function authorizationLink(base: string, asked: Asked): string {
  const parameters = Object.entries({
    redirect_uri: asked.redirectUrl,
    client_id: asked.appKey,
    models: asked.models.join(","),
    budget: asked.budget,
    expiry: asked.days,
    scope: asked.permissions.join(" "),
    state: asked.state,
    ...(asked.answer === "code" && { response_type: "code", code_challenge: CHALLENGE, code_challenge_method: "S256" }),
  }).filter(([, value]) => value !== "");
  return `${base}/authorize?${new URLSearchParams(parameters)}`;
}

export function deviceCommands(base: string, { appKey, permissions }: Asked): string {
  const fields = [
    ...(appKey === "" ? [] : [`client_id=${appKey}`]),
    ...(permissions.length === 0 ? [] : [`scope=${permissions.join(" ")}`]),
  ];
  const data = fields.map((field) => ` \\\n  --data-urlencode ${shellQuoted(field)}`).join("");
  const identity = appKey === "" ? "" : ` \\\n  --data-urlencode ${shellQuoted(`client_id=${appKey}`)}`;
  return `# Shows a code, and where a person types it.
curl -sS -X POST ${base}/api/device/code${data}

# Again and again, each time after "interval" seconds, until it answers with a key.
curl -sS -X POST ${base}/api/device/token \\
  --data-urlencode 'device_code=DEVICE_CODE'${identity}`;
}
