// Gets a key from the user of this program with the device flow (RFC 8628), and generates at the user's expense.
//
//   npm install openid-client
//   SLUICE_APP_KEY=pk_... node device-login.mjs "Why is the sky blue?"
//
// SLUICE_APP_KEY is a publishable key of yours: people are shown its name and yours. SLUICE_AUTH_URL and SLUICE_URL are where the
// authorization host and the gateway are, SLUICE_MODEL a model other than the default one.
import * as client from "openid-client";

const { SLUICE_APP_KEY, SLUICE_URL = "http://localhost:4000", SLUICE_AUTH_URL = SLUICE_URL, SLUICE_MODEL } = process.env;
const prompts = process.argv.slice(2);
if (!SLUICE_APP_KEY) throw new Error("Set SLUICE_APP_KEY to a publishable key: the gateway answers POST /account/keys with one.");

const host = new URL(SLUICE_AUTH_URL);
// Other than on your own machine it is https, and nothing less will do.
const execute = host.protocol === "http:" ? [client.allowInsecureRequests] : [];
const config = await client.discovery(host, SLUICE_APP_KEY, undefined, client.None(), { algorithm: "oauth2", execute });

const device = await client.initiateDeviceAuthorization(config, { scope: "profile usage" });
console.log(`Open ${device.verification_uri} and type ${device.user_code}`);
console.log(`Or follow ${device.verification_uri_complete}`);

let token;
try {
  token = await client.pollDeviceAuthorizationGrant(config, device);
} catch (error) {
  console.error(`No key: ${error.error ?? error.message}`);
  process.exit(1);
}
const person = await client.fetchUserInfo(config, token.access_token, client.skipSubjectCheck);
console.log(
  `Connected as ${person.preferred_username} for ${Math.round(token.expires_in / 86_400)} days; may read: ${token.scope || "nothing"}`,
);

// A real program keeps token.access_token where only its user can read it, and asks again when a request is answered 401.
for (const content of prompts.length > 0 ? prompts : ["Say hello."]) {
  const response = await fetch(`${SLUICE_URL}/v1/chat/completions`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token.access_token}`, "Content-Type": "application/json" },
    // The maximum cost of the answer is held from the budget until the actual cost is known.
    body: JSON.stringify({ max_tokens: 1_000, messages: [{ role: "user", content }], ...(SLUICE_MODEL && { model: SLUICE_MODEL }) }),
  });
  const answer = await response.json();
  if (response.ok) console.log(`${answer.choices[0].message.content} (${response.headers.get("x-cost")} credits)`);
  else console.log(`${response.status} ${answer.error.code}: ${answer.error.message}`);
}
