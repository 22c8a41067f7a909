/** My models page: wizard, connection test, editing, usage by others, runs and deletion. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, overflowOf, screenshot } from "../support/browser.js";
import { createMember, registerModel } from "../support/community-models.js";
import { type DashboardVisit, LOOKS, runGraphql, seriousFindings, visitDashboard } from "../support/dashboard.js";
import { signedIn } from "../support/sign-in.js";

const STRANGE_TITLE = "<img src=x> \u05e9\u05dc\u05d5\u05dd lived <b>mill</b>";

describe.skipIf(NO_BROWSER)("my models page", () => {
  let browser: Browser;
  let app: TestApp;
  let visit: DashboardVisit;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } })]);
    visit = await visitDashboard(browser, app);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  const next = () => visit.page.getByRole("button", { name: "Next" }).click();

  it("explains publishing, creates a prompt agent, and shows errors at their fields without losing input", async () => {
    const { page, open } = visit;
    await open("my-models");
    await page.getByText("No models or agents yet").waitFor();
    await page.getByText("an operator must allow your account to publish").waitFor();
    await page.getByRole("link", { name: "Create model or agent" }).first().click();
    await screenshot(page, "my-models-wizard-kind");
    await page.getByRole("radio", { name: "Prompt agent" }).check();
    await next();
    await page.getByRole("combobox", { name: "Base model" }).fill("acme/chat");
    await page.getByRole("option", { name: "acme/chat", exact: true }).click();
    await page.getByRole("textbox", { name: "System prompt" }).fill("You mill corn. ‮lived‬ <b>markup</b>");
    await screenshot(page, "my-models-wizard-prompt");
    await next();
    await page.getByRole("textbox", { name: "Name" }).fill("the mill");
    await page.getByRole("textbox", { name: "Title" }).fill("The mill");
    await next();
    await page.reload();
    await page.getByRole("button", { name: "Create prompt agent" }).click();

    const name = page.getByRole("textbox", { name: "Name" });
    await expect.poll(() => name.getAttribute("aria-invalid")).toBe("true");
    expect(new URL(page.url()).search).toBe("?step=3");
    expect(await name.inputValue()).toBe("the mill");
    await screenshot(page, "my-models-wizard-refused");
    await name.fill("mill");
    await next();
    await page.getByRole("button", { name: "Create prompt agent" }).click();
    await page.getByRole("heading", { level: 1, name: "The mill" }).waitFor();
    await page.getByText("You mill corn.").waitFor();
  });

  it("publishes an agent, and shows calls by others live", async () => {
    const { page, person } = visit;
    const id = page.url().split("/").at(-1) ?? "";
    await app.database.prisma.account.update({ where: { id: person.accountId }, data: { isPublisher: true } });
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Description" }).fill("Grinds.");
    await page.getByRole("radio", { name: /^Public/ }).check();
    await screenshot(page, "my-models-edit");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.getByRole("cell", { name: "Public", exact: true }).waitFor();
    await page.getByText("No calls by others in the last 30 days").waitFor();

    const { key } = await createMember(app);
    const { handle } = await app.database.prisma.account.findUniqueOrThrow({ where: { id: person.accountId } });
    const answer = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ model: `community/${handle}/mill`, messages: [{ role: "user", content: "Mill this." }] }),
    });
    expect(answer.status).toBe(200);
    await expect.poll(() => page.locator("[data-requests]").getAttribute("data-requests"), { timeout: 10_000 }).toBe("1");
    await page.getByText("Credits, last 30 days").waitFor();
    for (const { scheme, width } of LOOKS.slice(0, 3)) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      await page.reload();
      await page.getByText("Credits, last 30 days").waitFor();
      await screenshot(page, `my-models-one-${scheme}-${width}`);
    }
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 1280, height: 900 });
    expect(decodeURIComponent(id)).toBe(decodeURIComponent(page.url().split("/").at(-1) ?? ""));
  });

  it("tests an upstream, creates a proxy model, counts down its scheduled change, and deletes it", async () => {
    const { page, open } = visit;
    await open("my-models/new");
    await page.getByRole("radio", { name: "Proxy model" }).check();
    await next();
    const probe = page.getByRole("button", { name: "Test connection" });
    const address = page.getByRole("textbox", { name: "URL" });
    await address.fill("not an address");
    await probe.click();
    await expect.poll(() => address.getAttribute("aria-invalid")).toBe("true");
    await screenshot(page, "my-models-wizard-source");
    await address.fill(`${app.upstream.baseUrl}/chat/completions`);
    await page.getByLabel("Credential").fill("secret-of-mine");
    await page.getByRole("textbox", { name: "Upstream model name" }).fill("stones");
    await probe.click();
    await page.getByText("Test passed").waitFor();
    await next();
    await page.getByRole("textbox", { name: "Name" }).fill("stones");
    await page.getByRole("textbox", { name: "Title" }).fill("Mill stones");
    await next();
    await page.getByRole("radio", { name: /^Public/ }).check();
    const price = page.getByRole("textbox", { name: "Text input, per 1M tokens", exact: true });
    await price.fill("1000.5");
    await page.getByText("= 0.0010005 credits per token").waitFor();
    await page.getByRole("button", { name: "Create proxy model" }).click();
    await page.getByRole("dialog").getByText("Text input: 1000.5 credits per 1M tokens, 0.0010005 per token").waitFor();
    await screenshot(page, "my-models-price-question");
    await page.getByRole("button", { name: "Change prices" }).click();
    await price.fill("2");
    await page.getByText("= 0.000002 credits per token").waitFor();
    await screenshot(page, "my-models-wizard-terms");
    await page.getByRole("button", { name: "Create proxy model" }).click();
    await page.getByRole("heading", { level: 1, name: "Mill stones" }).waitFor();
    const { promptTextPrice } = await app.database.prisma.communityModel.findFirstOrThrow({ where: { title: "Mill stones" } });
    // In picocredits.
    expect(promptTextPrice).toBe(2_000_000n);
    await page.getByRole("button", { name: "Edit" }).click();
    expect(await price.inputValue()).toBe("2");
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("Scheduled change", { exact: true }).waitFor();
    await page.getByText(/2 h 59 min \d+ s/).waitFor();
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }))).not.toContain("secret-of-mine");
    await screenshot(page, "my-models-pending");

    await page.getByRole("link", { name: "My models" }).first().click();
    await page.getByRole("link", { name: "The mill" }).waitFor();
    await screenshot(page, "my-models-list");
    await page.getByRole("link", { name: "Mill stones" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete permanently" }).click();
    await page.getByRole("link", { name: "The mill" }).waitFor();
    await expect.poll(() => page.getByRole("link", { name: "Mill stones" }).count()).toBe(0);
  });

  it("warns about changes in another tab while editing, and keeps the changes of both", async () => {
    const { page, open, person } = visit;
    await open("my-models");
    await page.getByRole("link", { name: "The mill" }).click();
    await page.getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Description" }).fill("Grinds slowly.");
    const other = await visitDashboard(browser, app, { person });
    await other.open(`my-models/${page.url().split("/").at(-1)?.replace("?edit=", "") ?? ""}?edit`);
    await other.page.getByRole("textbox", { name: "Title" }).fill(STRANGE_TITLE);
    await other.page.getByRole("textbox", { name: "Description" }).fill("Grinds quickly.");
    await other.page.getByRole("button", { name: "Save" }).click();
    await other.page.getByRole("dialog").waitFor({ state: "hidden" });
    await other.context.close();

    await dialog.getByText("Changed elsewhere while you were editing").waitFor();
    await dialog.getByText("Description: now “Grinds quickly.”").waitFor();
    expect(await dialog.getByRole("textbox", { name: "Title" }).inputValue()).toBe(STRANGE_TITLE);
    expect(await dialog.getByRole("textbox", { name: "Description" }).inputValue()).toBe("Grinds slowly.");
    await screenshot(page, "my-models-elsewhere");
    await page.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "hidden" });
    await page.getByText("Grinds slowly.").waitFor();
    await page.getByRole("heading", { level: 1, name: STRANGE_TITLE }).waitFor();
    expect(await page.locator("img, b").count()).toBe(0);
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(() => overflowOf(page)).toBe(0);
    await screenshot(page, "my-models-strange-390");
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  it("shows errors and output of a code agent's recent runs", async () => {
    const { page, open, person } = visit;
    const { prisma } = app.database;
    const owner = await prisma.account.findUniqueOrThrow({ where: { id: person.accountId }, select: { handle: true } });
    const { id, modelId } = await registerModel(
      app,
      { ...owner, accountId: person.accountId, key: "", keyId: "" },
      {
        ...{ type: "code_agent", title: "The counter", api: null, url: null, upstreamModel: null, bearerToken: null },
        agent: {
          create: {
            ...{ repository: "https://git.example/maker/counter", deployedCommitSha: "0123456789abcdef0123456789abcdef01234567" },
            bundle: `export default () => { console.log("one <b>two</b>", "three"); throw new Error("I cannot count."); };`,
          },
        },
      },
    );
    await open(`my-models/${encodeURIComponent(toGlobalId("CodeAgent", id))}`);
    await page.getByText("No runs yet").waitFor();
    const input = { model: modelId, messages: [{ role: "USER", content: "Count." }] };
    const mutation = "mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { receipt { generationId } } }";
    await expect(runGraphql(app, signedIn(person), mutation, { input })).rejects.toThrow("The agent failed.");
    await expect.poll(() => prisma.agentRun.count({ where: { agentId: id } })).toBe(1);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText("one <b>two</b> three").waitFor();
    await page.getByText("Error: I cannot count.").waitFor();
    for (const { scheme, width } of LOOKS.slice(0, 3)) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      await screenshot(page, `my-models-runs-${scheme}-${width}`);
      expect(await seriousFindings(page)).toEqual([]);
    }
    expect(visit.browserErrors).toEqual([]);
  });
});
