/** Links and commands by which an app asks users for keys (docs/authorization.md). */
import { shellQuoted } from "../../ui/program-text.js";

export interface LinkOptions {
  /** Empty for an app that does not identify itself. */
  readonly appKey: string;
  readonly redirectUrl: string;
  readonly models: readonly string[];
  /** In credits. Empty for the gateway's default. */
  readonly budget: string;
  /** Empty for the gateway's default. */
  readonly days: string;
  readonly permissions: readonly string[];
  readonly state: string;
  /** Response with a code to exchange, or with the key in the URL fragment. */
  readonly answer: "code" | "key";
}

/** Placeholder: the app computes a challenge for each user. */
const CHALLENGE = "CODE_CHALLENGE";

/** `base` is the URL of the gateway's sign-in pages. */
export function authorizationLink(base: string, options: LinkOptions): string {
  const parameters = Object.entries({
    redirect_uri: options.redirectUrl,
    client_id: options.appKey,
    models: options.models.join(","),
    budget: options.budget,
    expiry: options.days,
    scope: options.permissions.join(" "),
    state: options.state,
    ...(options.answer === "code" && { response_type: "code", code_challenge: CHALLENGE, code_challenge_method: "S256" }),
  }).filter(([, value]) => value !== "");
  return `${base}/authorize?${new URLSearchParams(parameters)}`;
}

export function deviceCommands(base: string, { appKey, permissions }: LinkOptions): string {
  const fields = [
    ...(appKey === "" ? [] : [`client_id=${appKey}`]),
    ...(permissions.length === 0 ? [] : [`scope=${permissions.join(" ")}`]),
  ];
  const data = fields.map((field) => ` \\\n  --data-urlencode ${shellQuoted(field)}`).join("");
  const identity = appKey === "" ? "" : ` \\\n  --data-urlencode ${shellQuoted(`client_id=${appKey}`)}`;
  return `# Returns a code for the user and the URL to enter it at.
curl -sS -X POST ${base}/api/device/code${data}

# Repeat every "interval" seconds until the response has a key.
curl -sS -X POST ${base}/api/device/token \\
  --data-urlencode 'device_code=DEVICE_CODE'${identity}`;
}
