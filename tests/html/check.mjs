// Opens each page given on the command line in headless Chromium and fails on a console message,
// a request beyond the page itself, sideways scrolling of the page, or a violation of axe-core's
// rules. The figures that the page shows must equal those of the verdict.json beside it.
//
//   node check.mjs [--screenshots DIR] PAGE.html…

import { readFileSync, existsSync, mkdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL, fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const WIDTHS = [360, 1400];
const axe = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

const args = process.argv.slice(2);
let screenshots = null;
if (args[0] === "--screenshots") {
  screenshots = args[1];
  mkdirSync(screenshots, { recursive: true });
  args.splice(0, 2);
}
if (args.length === 0) {
  console.error("usage: node check.mjs [--screenshots DIR] PAGE.html…");
  process.exit(2);
}

/** Whether every effect of the verdict document stands in the page, to the last digit. */
async function figures(page, path) {
  const file = join(dirname(path), "verdict.json");
  if (!existsSync(file)) return [];
  const { verdicts } = JSON.parse(readFileSync(file, "utf8"));
  const shown = await page.$$eval("#verdicts tbody tr", (rows) =>
    rows.map((row) => ({
      finding: row.cells[5].textContent,
      effect: row.cells[6].querySelector("data")?.value ?? null,
    })),
  );
  const faults = [];
  if (shown.length !== verdicts.length) faults.push(`${shown.length} rows for ${verdicts.length} verdicts`);
  verdicts.forEach((verdict, index) => {
    const effect = shown[index]?.effect;
    if (shown[index]?.finding !== verdict.verdict) faults.push(`row ${index + 1}: not ${verdict.verdict}`);
    if ((effect === null ? null : Number(effect)) !== verdict.effect_percent) {
      faults.push(`row ${index + 1}: effect ${effect}, not ${verdict.effect_percent}`);
    }
  });
  return faults;
}

/** What sticks out of the page at the right: nothing may. */
function overflow() {
  const wide = document.documentElement.scrollWidth - window.innerWidth;
  if (wide <= 0) return [];
  const inside = (element) => element.parentElement?.closest(".scroll, svg") !== null;
  const out = [...document.querySelectorAll("body *")].filter(
    (element) => !inside(element) && element.getBoundingClientRect().right > window.innerWidth + 0.5,
  );
  return [`${wide} px too wide: ${out.slice(0, 3).map((e) => e.outerHTML.slice(0, 80)).join(" ")}`];
}

async function check(browser, path, width, colorScheme) {
  const faults = [];
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const page = await context.newPage();
  const url = pathToFileURL(resolve(path)).href;
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const target = request.url();
    if (target !== url && !target.startsWith("data:")) faults.push(`request: ${target}`);
  });
  await page.goto(url);
  faults.push(...(await page.evaluate(overflow)));
  if (width === WIDTHS[0]) faults.push(...(await figures(page, path)));
  if (screenshots) {
    const name = `${basename(dirname(resolve(path)))}-${width}-${colorScheme}.png`;
    await page.screenshot({ path: join(screenshots, name), fullPage: true });
  }
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document));
  for (const { id, help, nodes } of violations) {
    faults.push(`axe ${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" ")}`);
  }
  await context.close();
  return faults.map((fault) => `${path} at ${width} px, ${colorScheme}: ${fault}`);
}

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const faults = [];
let checks = 0;
for (const path of args) {
  for (const width of WIDTHS) {
    for (const colorScheme of ["light", "dark"]) {
      faults.push(...(await check(browser, path, width, colorScheme)));
      checks += 1;
    }
  }
}
await browser.close();
faults.forEach((fault) => console.error(fault));
console.log(`${checks} views of ${args.length} pages, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
